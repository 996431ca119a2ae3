#include "compressed_writer.hpp"

#include "lockstep/base/text.hpp"

#include <algorithm>
#include <unistd.h>

namespace lockstep::data {

namespace {

/// Small enough for a sample to be read without many others, large enough to compress well.
constexpr std::uint64_t chunk_bytes = std::uint64_t{256} << 10;

} // namespace

CompressedWriter::CompressedWriter(std::filesystem::path path, ImportForm const& form,
                                   std::vector<FieldExtent> const& extents, int deflate)
    : path_(std::move(path)), partial_(concat(path_.string(), ".partial-", ::getpid())),
      fields_(form.fields), written_(fields_.size()) {
    if (!path_.parent_path().empty()) {
        make_directories(path_.parent_path());
    }
    file_.emplace(h5::File::create(partial_, {.alignment = 1}));
    for (std::size_t i = 0; i < fields_.size(); ++i) {
        auto const& field = fields_[i];
        h5::Shape shape = field.row;
        shape.insert(shape.begin(), extents[i].rows);
        auto const fitting = chunk_bytes / std::max<std::uint64_t>(field.row_bytes(), 1);
        if (extents[i].rows > 0) {
            file_->create_compressed(
                field.name, field.type, shape,
                {std::clamp<std::uint64_t>(fitting, 1, extents[i].rows), deflate});
        } else {
            file_->create_dataset(field.name, field.type, shape);
        }
        if (field.ragged) {
            auto const offsets = extents[i].offsets();
            file_->create_dataset(field.name + "_offsets", h5::Type::i64, {offsets.size()});
            file_->write(field.name + "_offsets", h5::Type::i64, offsets.data());
        }
    }
    write_attributes(*file_, form);
}

CompressedWriter::~CompressedWriter() {
    if (!committed_) {
        file_.reset();
        std::error_code ignored;
        std::filesystem::remove(partial_, ignored);
    }
}

void CompressedWriter::append(std::size_t field, std::span<std::byte const> rows) {
    auto const count = rows.size() / fields_[field].row_bytes();
    if (count > 0) {
        file_->write_rows(fields_[field].name, fields_[field].type, {written_[field], count},
                          rows.data());
        written_[field] += count;
    }
}

std::uint64_t CompressedWriter::commit() {
    file_->close();
    auto const file = File::open_write(partial_);
    file.sync();
    rename_durably(partial_, path_);
    committed_ = true;
    return file.size();
}

} // namespace lockstep::data
