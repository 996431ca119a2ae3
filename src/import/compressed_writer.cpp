#include "compressed_writer.hpp"

#include "base/text.hpp"
#include "h5/offsets.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::import {

namespace {

/// Small enough for a sample to be read without many others, large enough to compress well.
constexpr std::uint64_t chunk_bytes = std::uint64_t{256} << 10;
constexpr std::uint64_t read_bytes = std::uint64_t{4} << 20;

} // namespace

CompressedWriter::CompressedWriter(std::filesystem::path path, ImportForm const& form,
                                   std::vector<FieldExtent> const& extents, int deflate)
    : path_(std::move(path)), partial_(partial_path(path_)) {
    if (!path_.parent_path().empty()) {
        make_directories(path_.parent_path());
    }
    file_.emplace(h5::File::create(partial_.path(), {.alignment = 1}));
    for (std::size_t i = 0; i < form.fields.size(); ++i) {
        add_stream(form.fields[i], extents[i], deflate);
    }
    write_attributes(*file_, form);
}

void CompressedWriter::add_stream(ImportField const& field, FieldExtent const& extent,
                                  int deflate) {
    h5::Shape shape = field.row;
    shape.insert(shape.begin(), extent.rows);
    auto const fitting = chunk_bytes / std::max<std::uint64_t>(field.row_bytes(), 1);
    if (extent.rows > 0) {
        file_->create_dataset(field.name, field.type, shape,
                              {.chunk_rows = std::clamp<std::uint64_t>(fitting, 1, extent.rows),
                               .deflate = deflate,
                               .checksums = true});
    } else {
        file_->create_dataset(field.name, field.type, shape);
    }
    Stream stream{field, extent.rows, {}, {}, {}};
    if (field.ragged) {
        stream.offsets = extent.offsets();
        file_->create_dataset(field.name + "_offsets", h5::Type::i64, {stream.offsets.size()});
        file_->write(field.name + "_offsets", h5::Type::i64, stream.offsets);
    }
    stream.rows_of.emplace(*file_, field.name, field.type);
    streams_.push_back(std::move(stream));
}

void CompressedWriter::append(std::size_t field, std::span<std::byte const> rows) {
    streams_[field].rows_of->append(rows);
    streams_[field].hash.add(rows);
}

std::uint64_t CompressedWriter::commit() {
    for (auto& stream : streams_) {
        stream.rows_of->close();
    }
    file_->close();
    auto const file = File::open_write(partial_.path());
    file.sync();
    read_back();
    partial_.rename(path_);
    return file.size();
}

/// Whatever is wrong with what was just written is the disk's doing, and no damage of an input.
void CompressedWriter::read_back() const {
    try {
        compare_with_file();
    } catch (Error const& error) {
        if (error.code() != ExitCode::data) {
            throw;
        }
        throw Error(ExitCode::io,
                    {concat("the data read back from ", partial_.path().string(),
                            " is not what was written"),
                     concat(error.text().what, ": ", error.text().why),
                     "Check this disk for faults (dmesg), or name an OUT on another disk"});
    }
}

void CompressedWriter::compare_with_file() const {
    auto const file = h5::File::open(partial_.path());
    for (auto const& stream : streams_) {
        auto const& field = stream.field;
        auto const row = field.row_bytes();
        auto const at_once =
            std::max<std::uint64_t>(read_bytes / std::max<std::uint64_t>(row, 1), 1);
        Hasher hash;
        std::vector<std::byte> bytes;
        for (std::uint64_t first = 0; first < stream.rows; first += at_once) {
            auto const count = std::min(at_once, stream.rows - first);
            bytes.resize(count * row);
            file.read_rows(field.name, field.type, {first, count}, bytes);
            hash.add(bytes);
        }
        bool const same = hash.digest() == stream.hash.digest() &&
                          (!field.ragged || h5::read_offsets(file, field.name + "_offsets",
                                                             stream.rows) == stream.offsets);
        if (!same) {
            throw Error(
                ExitCode::io,
                {concat("cannot write dataset ", field.name, " of ", partial_.path().string()),
                 "the data read back is not what was written",
                 "Check this disk for faults (dmesg), or name an OUT on another disk"});
        }
    }
}

} // namespace lockstep::import
