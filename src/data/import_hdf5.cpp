#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/data/import.hpp"

#include <algorithm>
#include <tuple>

#include "format.hpp"
#include "writer.hpp"

namespace lockstep::data {

namespace {

constexpr std::uint64_t bytes_at_once = std::uint64_t{8} << 20;

/// The type in which inputs are kept: as they are, or float32 where we do not read them directly.
h5::Type kept_type(h5::Type type) {
    switch (type) {
    case h5::Type::f16:
    case h5::Type::i64:
    case h5::Type::u64:
        return h5::Type::f32;
    default:
        return type;
    }
}

} // namespace

ImportedFile import_hdf5(Hdf5Import const& options, ImportProgress const& progress) {
    auto const source = h5::File::open(options.source);
    auto const info = readable_dataset(source, options.inputs);
    auto const targets = read_targets(source, options.targets, info.shape.front());
    SetForm form;
    form.samples = static_cast<std::int64_t>(targets.size());
    form.sample_shape.assign(info.shape.begin() + 1, info.shape.end());
    form.input_type = kept_type(*info.readable_as);
    auto const theirs = source.texts_attribute("/", "classes").value_or(form.class_names);
    form.class_names =
        complete_names(options.classes.empty() ? theirs : options.classes, targets, options.source);
    std::tie(form.mean, form.std) = read_moments(source, form.sample_shape);

    SetWriter writer(options.out, form);
    auto const sample_bytes = h5::elements(form.sample_shape) * h5::size_of(form.input_type);
    auto const rows = static_cast<std::int64_t>(
        std::max<std::uint64_t>(bytes_at_once / std::max<std::uint64_t>(sample_bytes, 1), 1));
    std::vector<std::byte> buffer;
    for (std::int64_t done = 0; done < form.samples;) {
        auto const count = std::min(rows, form.samples - done);
        buffer.resize(static_cast<std::size_t>(count) * sample_bytes);
        source.read_rows(options.inputs, form.input_type,
                         {static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(count)},
                         buffer.data());
        writer.append_inputs(buffer);
        done += count;
        progress(options.out, done, form.samples);
    }
    writer.write_targets(targets);
    return {options.out, form.samples, writer.commit()};
}

} // namespace lockstep::data
