#include "writer.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/hash.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <unistd.h>

#include "format.hpp"

namespace lockstep::data {

SetWriter::SetWriter(std::filesystem::path path, SetForm form)
    : path_(std::move(path)), partial_(concat(path_.string(), ".partial-", ::getpid())),
      form_(std::move(form)) {
    if (!path_.parent_path().empty()) {
        make_directories(path_.parent_path());
    }
    try {
        lay_out();
        file_.emplace(File::open_write(partial_));
        file_->claim_space(file_->size());
    } catch (...) {
        std::error_code ignored; // the failure that brought us here is the one to tell
        std::filesystem::remove(partial_, ignored);
        throw;
    }
}

void SetWriter::lay_out() {
    auto file = h5::File::create(partial_, {.alignment = 4096});
    auto const samples = static_cast<std::uint64_t>(form_.samples);
    h5::Shape shape = form_.sample_shape;
    shape.insert(shape.begin(), samples);
    auto const input_bytes = h5::elements(shape) * h5::size_of(form_.input_type);
    file.create_dataset("inputs", form_.input_type, shape);
    file.create_dataset("targets", h5::Type::i64, {samples});
    file.create_dataset("checksums/inputs", h5::Type::u64, {checksum_blocks(input_bytes)});
    file.create_dataset("checksums/targets", h5::Type::u64,
                        {checksum_blocks(samples * sizeof(std::int64_t))});
    file.create_dataset("checksums/rest", h5::Type::u64, {1});
    file.set_attribute("checksums", "block_bytes", static_cast<std::int64_t>(checksum_block));
    file.set_attribute("checksums", "algorithm", std::string("xxh3-64"));
    file.set_attribute("/", "format", std::string(format_name));
    file.set_attribute("/", "version", format_version);
    file.set_attribute("/", "classes", form_.class_names);
    if (!form_.mean.empty()) {
        file.set_attribute("/", "mean", form_.mean);
        file.set_attribute("/", "std", form_.std);
    }
    input_bytes_ = input_bytes;
    inputs_at_ = file.info("inputs").offset.value();
    targets_at_ = file.info("targets").offset.value();
    input_sums_at_ = file.info("checksums/inputs").offset.value();
    target_sums_at_ = file.info("checksums/targets").offset.value();
    rest_sum_at_ = file.info("checksums/rest").offset.value();
    file.close();
}

SetWriter::~SetWriter() {
    if (!committed_) {
        std::error_code ignored;
        std::filesystem::remove(partial_, ignored);
    }
}

void SetWriter::append_inputs(std::span<std::byte const> samples) {
    file_->write_at(inputs_at_ + written_, samples);
    written_ += samples.size();
    while (!samples.empty()) {
        auto const room = static_cast<std::size_t>(checksum_block) - open_block_.size();
        auto const piece = samples.first(std::min(room, samples.size()));
        open_block_.insert(open_block_.end(), piece.begin(), piece.end());
        samples = samples.subspan(piece.size());
        if (open_block_.size() == checksum_block) {
            input_sums_.push_back(hash64(open_block_));
            open_block_.clear();
        }
    }
}

void SetWriter::write_targets(std::span<std::int64_t const> targets) {
    file_->write_at(targets_at_, std::as_bytes(targets));
    auto const sums = block_checksums(std::as_bytes(targets));
    file_->write_at(target_sums_at_, std::as_bytes(std::span(sums)));
}

std::uint64_t SetWriter::commit() {
    if (!open_block_.empty()) {
        input_sums_.push_back(hash64(open_block_));
    }
    file_->write_at(input_sums_at_, std::as_bytes(std::span(input_sums_)));
    // Names, shapes, attributes and the checksums themselves are under one more checksum.
    auto const target_bytes = static_cast<std::uint64_t>(form_.samples) * sizeof(std::int64_t);
    std::uint64_t const rest = checksum_outside(
        *file_, {{inputs_at_, input_bytes_}, {targets_at_, target_bytes}, {rest_sum_at_, 8}});
    file_->write_at(rest_sum_at_, std::as_bytes(std::span(&rest, 1)));
    file_->sync();
    auto const size = file_->size();
    rename_durably(partial_, path_);
    committed_ = true;
    return size;
}

} // namespace lockstep::data
