#include "writer.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "data/checksums.hpp"
#include "data/format.hpp"
#include "data/verify.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::import {

void write_attributes(h5::File& file, ImportForm const& form) {
    file.set_attribute("/", "format", std::string(data::format_name));
    file.set_attribute("/", "version", data::format_version);
    file.set_attribute("/", "classes", form.class_names);
    if (!form.mean.empty()) {
        file.set_attribute("/", "mean", form.mean);
        file.set_attribute("/", "std", form.std);
    }
    for (auto const& [name, texts] : form.texts) {
        file.set_attribute("/", name, texts);
    }
    for (auto const& [name, numbers] : form.numbers) {
        file.set_attribute("/", name, numbers);
    }
    for (auto const& [name, text] : form.long_texts) {
        file.write_text(name, text);
    }
    for (auto const& [name, table] : form.tables) {
        file.create_dataset(name, h5::Type::u8, {table.size()});
        file.write(name, h5::Type::u8, table);
    }
}

std::vector<std::int64_t> FieldExtent::offsets() const {
    std::vector<std::int64_t> offsets{0};
    for (auto const rows : sample_rows) {
        offsets.push_back(offsets.back() + static_cast<std::int64_t>(rows));
    }
    return offsets;
}

SetWriter::SetWriter(std::filesystem::path path, ImportForm const& form,
                     std::vector<FieldExtent> extents)
    : path_(std::move(path)), partial_(partial_path(path_)) {
    if (!path_.parent_path().empty()) {
        make_directories(path_.parent_path());
    }
    lay_out(form, extents);
    file_.emplace(File::open_write(partial_.path()));
    file_->claim_space(file_->size());
    write_offsets(form.fields, extents);
}

void SetWriter::lay_out(ImportForm const& form, std::vector<FieldExtent> const& extents) {
    auto file = h5::File::create(partial_.path(), {.alignment = 4096});
    file.create_group("checksums");
    for (std::size_t i = 0; i < form.fields.size(); ++i) {
        auto const& field = form.fields[i];
        h5::Shape shape = field.row;
        shape.insert(shape.begin(), extents[i].rows);
        auto const bytes = extents[i].rows * field.row_bytes();
        file.create_dataset(field.name, field.type, shape);
        if (field.ragged) {
            file.create_dataset(field.name + "_offsets", h5::Type::i64,
                                {extents[i].sample_rows.size() + 1});
        }
        file.create_dataset("checksums/" + field.name, h5::Type::u64,
                            {data::checksum_blocks(bytes)});
        streams_.push_back({.name = field.name, .bytes = bytes, .open_block = {}, .sums = {}});
    }
    file.create_dataset("checksums/rest", h5::Type::u64, {1});
    file.set_attribute("checksums", "block_bytes", static_cast<std::int64_t>(data::checksum_block));
    file.set_attribute("checksums", "algorithm", std::string("xxh3-64"));
    write_attributes(file, form);
    // An empty dataset has no place in the file, and needs none.
    for (auto& stream : streams_) {
        stream.at = file.info(stream.name).offset.value_or(0);
        stream.sums_at = file.info("checksums/" + stream.name).offset.value_or(0);
    }
    rest_sum_at_ = file.info("checksums/rest").offset.value();
    file.close();
}

void SetWriter::write_offsets(std::vector<ImportField> const& fields,
                              std::vector<FieldExtent> const& extents) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (!fields[i].ragged) {
            continue;
        }
        auto const offsets = extents[i].offsets();
        auto const at =
            h5::File::open(partial_.path()).info(fields[i].name + "_offsets").offset.value();
        auto const bytes = std::as_bytes(std::span(offsets));
        file_->write_at(at, bytes);
        offsets_.push_back({fields[i].name + "_offsets", at, bytes.size(), hash64(bytes)});
    }
}

void SetWriter::require_as_written() const {
    auto const refuse = [&](std::string const& dataset, std::uint64_t first, std::uint64_t last) {
        throw Error(ExitCode::io,
                    {concat("cannot write dataset ", dataset, " of ", partial_.path().string()),
                     concat("the data read back in bytes ", first, " to ", last,
                            " is not what was written"),
                     "Check this disk for faults (dmesg), or name an OUT on another disk"});
    };
    if (auto const damages = data::verify(partial_.path()); !damages.empty()) {
        auto const& first = damages.front();
        refuse(first.dataset, first.first_byte, first.last_byte);
    }
    auto const file = File::open_read(partial_.path());
    for (auto const& [name, at, size, hash] : offsets_) {
        std::vector<std::byte> bytes(size);
        file.read_at(at, bytes);
        if (hash64(bytes) != hash) {
            refuse(name, 0, size - 1);
        }
    }
}

void SetWriter::append(std::size_t field, std::span<std::byte const> rows) {
    auto& stream = streams_[field];
    if (stream.written + rows.size() > stream.bytes) {
        throw Error(ExitCode::software,
                    {concat("too many rows of ", stream.name, " for ", path_.string()),
                     "the file has space for fewer rows", "This is a bug; please report it"});
    }
    file_->write_at(stream.at + stream.written, rows);
    stream.written += rows.size();
    while (!rows.empty()) {
        auto const room = static_cast<std::size_t>(data::checksum_block) - stream.open_block.size();
        auto const part = rows.first(std::min(room, rows.size()));
        stream.open_block.insert(stream.open_block.end(), part.begin(), part.end());
        rows = rows.subspan(part.size());
        if (stream.open_block.size() == data::checksum_block) {
            stream.sums.push_back(hash64(stream.open_block));
            stream.open_block.clear();
        }
    }
}

std::uint64_t SetWriter::commit() {
    std::vector<data::ByteRange> covered{{rest_sum_at_, sizeof(std::uint64_t)}};
    for (auto& stream : streams_) {
        if (!stream.open_block.empty()) {
            stream.sums.push_back(hash64(stream.open_block));
        }
        file_->write_at(stream.sums_at, std::as_bytes(std::span(stream.sums)));
        covered.push_back({stream.at, stream.bytes});
    }
    // Names, shapes, attributes and the checksums themselves are under one more checksum.
    std::uint64_t const rest = data::checksum_outside(*file_, covered);
    file_->write_at(rest_sum_at_, std::as_bytes(std::span(&rest, 1)));
    file_->sync();
    require_as_written();
    auto const size = file_->size();
    partial_.rename(path_);
    return size;
}

} // namespace lockstep::import
