#include "checkpoint/reader.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "checkpoint/checksum_header.hpp"
#include "checkpoint/content.hpp"
#include "checkpoint/layout.hpp"
#include "checkpoint/record.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/step_name.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "damage.hpp"

namespace lockstep::checkpoint {

namespace {

/// A file copied under another step's name is whole, and yet not what it is taken for.
void require_step_of_name(std::filesystem::path const& path, Record const& record) {
    auto const named = step_of_name(path.filename().string());
    auto const recorded = record.integers.find("step");
    if (named && recorded != record.integers.end() && recorded->second != *named) {
        throw Error(ExitCode::data, {concat(path.string(), " has the name of another step"),
                                     concat("it is the checkpoint of step ", recorded->second,
                                            ", but the file was copied or renamed"),
                                     concat("Rename the file to ", name_of_step(recorded->second),
                                            ", or remove the file")});
    }
}

} // namespace

Reader::Reader(VerifiedFile const& verified) : path_(verified.path()) {
    auto const& path = path_;
    if (is_safetensors(path)) {
        throw not_a_checkpoint(
            path, "is a safetensors file, which has weights and not the state of a run",
            "To begin a new run with these weights, set model.weights to this file");
    }
    auto const file = std::make_shared<File>(File::open_read(path));
    bytes_ = file->size();
    require_checksum_header(*file);
    auto const h5 = h5::File::open_self_contained(path);
    record_ = read_record(h5, checkpoint_format);
    require_step_of_name(path, record_);
    read_layout(h5.read_text(layout_path), path, arrays_, views_);
    std::vector<std::uint64_t> offsets;
    for (auto const& array : arrays_) {
        auto const info = h5.info(array.name);
        if (info.type != array.type || info.shape != h5::Shape{array.elements} ||
            (array.elements > 0 && !info.offset)) {
            throw lacking(path, concat("array ", array.name, " of the recorded shape"));
        }
        offsets.push_back(info.offset.value_or(0));
    }
    read_ = [file, offsets](std::size_t array, std::uint64_t first, std::span<std::byte> into) {
        file->read_at(offsets[array] + first, into);
    };
}

Reader::Reader(std::filesystem::path name, Record record, std::string const& layout, ReadBytes read)
    : path_(std::move(name)), record_(std::move(record)), read_(std::move(read)) {
    read_layout(layout, path_, arrays_, views_);
}

bool Reader::has(std::string const& array) const {
    return std::any_of(arrays_.begin(), arrays_.end(),
                       [&](Array const& known) { return known.name == array; });
}

Array const& Reader::array(std::string const& name) const {
    auto const found = std::find_if(arrays_.begin(), arrays_.end(),
                                    [&](Array const& known) { return known.name == name; });
    if (found == arrays_.end()) {
        throw lacking(path(), concat("array ", name));
    }
    return *found;
}

void Reader::read(std::string const& array, std::uint64_t first, std::span<std::byte> into) const {
    auto const& known = this->array(array);
    auto const unit = h5::size_of(known.type);
    auto const count = into.size() / unit;
    if (into.size() % unit != 0 || first > known.elements || count > known.elements - first) {
        throw lacking(path(), concat("array ", array, " of at least ", first + count,
                                     " elements, only one of ", known.elements));
    }
    auto const index = static_cast<std::size_t>(&known - arrays_.data());
    read_(index, first * unit, into);
}

} // namespace lockstep::checkpoint
