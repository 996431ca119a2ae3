#include "data/look_through.hpp"

#include "base/text.hpp"
#include "data/format.hpp"
#include "data/inspect.hpp"
#include "data/sample_sources.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace lockstep::data {

namespace {

/// Whether the first target is a class for each place, of those that the file names: it may name
/// the values of a sample, too.
bool has_classes_of_places(Dataset const& dataset) {
    auto const& target = dataset.targets().front();
    auto const names = static_cast<std::uint64_t>(dataset.classes());
    return !dataset.has_labels() && names > 0 && target.shape != h5::Shape{names} &&
           (target.whole || target.shape.size() > 1);
}

/// Counts in the values of sample `sample`, element [begin, end).
void count(NotFinite& found, std::span<float const> values, std::int64_t sample) {
    auto const wrong =
        std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
    if (wrong > 0) {
        found.first = found.count == 0 ? sample : found.first;
        found.count += wrong;
        ++found.samples;
    }
}

} // namespace

std::vector<NotFinite> look_through(DatasetOptions const& options) {
    constexpr std::size_t bytes_at_once = std::size_t{4} << 20;
    Dataset dataset(alone(options));
    if (has_classes_of_places(dataset)) {
        dataset.expect_classes(dataset.classes(), no_class);
    }
    auto fields = dataset.inputs();
    fields.insert(fields.end(), dataset.targets().begin(), dataset.targets().end());
    std::vector<NotFinite> found;
    std::uint64_t sample_bytes = 1;
    for (auto const& field : fields) {
        found.push_back({.dataset = field.name});
        sample_bytes += h5::elements(field.shape) * h5::size_of(field.type);
    }
    auto const at_once =
        static_cast<std::int64_t>(std::max<std::uint64_t>(bytes_at_once / sample_bytes, 1));
    Batch batch;
    Scratch scratch;
    for (std::int64_t first = 0; first < dataset.samples(); first += at_once) {
        auto const samples = std::min(at_once, dataset.samples() - first);
        batch.indices.resize(static_cast<std::size_t>(samples));
        std::iota(batch.indices.begin(), batch.indices.end(), first);
        dataset.read(batch, scratch);
        for (std::size_t f = 0; f < fields.size(); ++f) {
            auto const& values = batch.fields[f];
            auto const row = h5::elements(fields[f].shape);
            std::span<float const> const reals = values.reals;
            for (std::size_t i = 0; !reals.empty() && i < batch.indices.size(); ++i) {
                auto const begin =
                    fields[f].ragged ? static_cast<std::size_t>(values.offsets[i]) : i;
                auto const end =
                    fields[f].ragged ? static_cast<std::size_t>(values.offsets[i + 1]) : i + 1;
                count(found[f], reals.subspan(begin * row, (end - begin) * row), batch.indices[i]);
            }
        }
    }
    std::erase_if(found, [](NotFinite const& field) { return field.count == 0; });
    return found;
}

void look_through_sources(DatasetOptions const& options) {
    auto const info = describe(options);
    auto const is_field = [](FieldInfo const& field) { return field.name == sources_name; };
    bool const are_rows = options.sequence == 0 && !options.sample_per_file;
    if (info.ours && (are_rows || info.documents > 0) &&
        std::ranges::none_of(info.fields, is_field)) {
        require_sources(h5::File::open(info.path),
                        static_cast<std::uint64_t>(are_rows ? info.samples : info.documents));
    }
}

void look_through_mask(DatasetOptions const& options) {
    constexpr std::uint64_t values_at_once = std::uint64_t{4} << 20;
    if (options.mask.empty()) {
        return;
    }
    std::vector<std::uint8_t> values;
    for (auto const& path : expand_files(options.files)) {
        auto const file = h5::File::open(path);
        auto const info = readable_dataset(file, options.mask);
        if (info.readable_as != h5::Type::u8 || info.shape.size() != 1) {
            continue; // no mask: a data set with it cannot be opened, and its error says more
        }
        auto const marks = info.shape.front();
        for (std::uint64_t first = 0; first < marks; first += values_at_once) {
            values.resize(std::min(values_at_once, marks - first));
            file.read_rows(options.mask, h5::Type::u8, {first, values.size()},
                           std::as_writable_bytes(std::span(values)));
            auto const wrong = std::ranges::find_if(values, [](auto mark) { return mark > 1; });
            if (wrong != values.end()) {
                throw wrong_mark(concat("value ", static_cast<int>(*wrong), " at index ",
                                        first + static_cast<std::uint64_t>(wrong - values.begin()),
                                        " in dataset ", options.mask, " of ", path.string()));
            }
        }
    }
}

} // namespace lockstep::data
