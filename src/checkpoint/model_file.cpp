#include "checkpoint/model_file.hpp"

#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/checksum_header.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/record.hpp"
#include "checkpoint/space.hpp"
#include "checkpoint/writer.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <system_error>

#include "damage.hpp"

namespace lockstep::checkpoint {

namespace {

void check_form(NamedArray const& array) {
    auto const expected = h5::elements(array.shape) * h5::size_of(array.type);
    if (array.bytes.size() != expected) {
        throw Error(ExitCode::software, {concat("array ", array.path, " has the wrong size"),
                                         concat("it has ", array.bytes.size(),
                                                " bytes, but its shape needs ", expected),
                                         "This is a bug; please report it"});
    }
}

void write_datasets(std::filesystem::path const& path, std::vector<NamedArray> const& arrays,
                    Record const& record, Alignment alignment) {
    h5::CreateOptions options{.user_block = checksum_header_bytes};
    if (alignment == Alignment::none) {
        options.alignment = 1;
    }
    auto file = h5::File::create(path, options);
    for (auto const& array : arrays) {
        file.create_dataset(array.path, array.type, array.shape);
        file.write(array.path, array.type, array.bytes);
    }
    write_record(file, record, model_format);
    file.close();
}

} // namespace

void write_model(std::filesystem::path const& path, std::vector<NamedArray> const& arrays,
                 Record const& record, Alignment alignment) {
    auto bytes = overhead_of(record, arrays.size());
    for (auto const& array : arrays) {
        check_form(array);
        bytes += array.bytes.size();
    }
    PartialFile partial(lockstep::partial_path(path));
    try_space(partial.path(), bytes);
    write_datasets(partial.path(), arrays, record, alignment);
    write_checksum_header(File::open_write(partial.path()));
    partial.rename(path);
}

bool is_model_file(std::filesystem::path const& path) {
    return h5::File::open(path).text_attribute("/", "format") == model_format;
}

ModelFile::ModelFile(VerifiedFile const& file) : file_(File::open_read(file.path())) {
    auto const& path = file.path();
    require_checksum_header(file_);
    auto const h5 = h5::File::open_self_contained(path);
    record_ = read_record(h5, model_format);
    for (auto const& info : h5.datasets()) {
        if (info.path.starts_with(concat(record_group, "/"))) {
            continue;
        }
        if (!info.type || (!info.offset && h5::elements(info.shape) > 0)) {
            throw lacking(path, concat("plain numbers in ", info.path));
        }
        places_.emplace(info.path, entries_.size());
        entries_.push_back({info.path, *info.type, info.shape});
        offsets_.push_back(info.offset.value_or(0));
    }
}

ModelFile::ArrayInfo const& ModelFile::entry(std::string const& path) const {
    auto const found = places_.find(path);
    if (found == places_.end()) {
        throw lacking(file_.path(), path);
    }
    return entries_[found->second];
}

void ModelFile::read(std::string const& path, std::span<std::byte> into) const {
    auto const& known = entry(path);
    if (into.size() != h5::elements(known.shape) * h5::size_of(known.type)) {
        throw lacking(file_.path(), concat(path, " of ", into.size(), " bytes"));
    }
    file_.read_at(offsets_[static_cast<std::size_t>(&known - entries_.data())], into);
}

} // namespace lockstep::checkpoint
