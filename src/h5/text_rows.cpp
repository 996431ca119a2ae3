#include "h5/text_rows.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>

namespace lockstep::h5 {

namespace {

constexpr std::uint64_t rows_at_once = 1024;

std::string offsets_of(std::string const& name) {
    return name + "_offsets";
}

[[noreturn]] void refuse(File const& file, std::string const& name, std::string const& why) {
    throw Error(ExitCode::data, {concat("dataset ", name, " of ", file.path().string()), why,
                                 concat("Import the data again, or remove the datasets ", name,
                                        " and ", offsets_of(name), " from the file")});
}

} // namespace

std::optional<TextRows> TextRows::in(File const& file, std::string const& name) {
    if (!file.exists(name) || !file.exists(offsets_of(name))) {
        return std::nullopt;
    }
    auto const texts = file.info(name);
    auto const offsets = file.info(offsets_of(name));
    if (texts.readable_as != Type::u8 || texts.shape.size() != 1 ||
        offsets.readable_as != Type::i64 || offsets.shape.size() != 1 ||
        offsets.shape.front() == 0) {
        return std::nullopt;
    }
    return TextRows(name, offsets.shape.front() - 1, texts.shape.front());
}

std::string TextRows::at(File const& file, std::uint64_t row) {
    if (row >= count_) {
        refuse(file, name_, concat("it has no text for sample ", row, ", only ", count_));
    }
    if (offsets_.empty() || row < first_ || row >= first_ + offsets_.size() - 1) {
        read_block(file, row - row % rows_at_once);
    }
    auto const at = row - first_;
    auto const begin = static_cast<std::size_t>(offsets_[at] - offsets_.front());
    return block_.substr(begin, static_cast<std::size_t>(offsets_[at + 1] - offsets_[at]));
}

void TextRows::read_block(File const& file, std::uint64_t first) {
    std::vector<std::int64_t> offsets(std::min(rows_at_once, count_ - first) + 1);
    file.read_part(offsets_of(name_), Type::i64, first, std::as_writable_bytes(std::span(offsets)));
    auto const is_wrong = [](std::int64_t begin, std::int64_t end) {
        return end < begin || static_cast<std::uint64_t>(end - begin) > max_row_text;
    };
    bool const begins_late = first == 0 && offsets.front() != 0;
    bool const ends_early = first + offsets.size() == count_ + 1 &&
                            static_cast<std::uint64_t>(offsets.back()) != bytes_;
    if (offsets.front() < 0 || begins_late || ends_early ||
        std::ranges::adjacent_find(offsets, is_wrong) != offsets.end() ||
        static_cast<std::uint64_t>(offsets.back()) > bytes_) {
        refuse(file, name_,
               concat("its offsets do not divide ", bytes_, " bytes into texts of at most ",
                      max_row_text, " bytes"));
    }
    block_.resize(static_cast<std::size_t>(offsets.back() - offsets.front()));
    if (!block_.empty()) {
        file.read_part(name_, Type::u8, static_cast<std::uint64_t>(offsets.front()),
                       std::as_writable_bytes(std::span(block_)));
    }
    first_ = first;
    offsets_ = std::move(offsets);
}

void write_text_rows(File& file, std::string const& name, std::span<std::string const> texts) {
    std::string all;
    std::vector<std::int64_t> offsets{0};
    for (auto const& text : texts) {
        all += text;
        offsets.push_back(static_cast<std::int64_t>(all.size()));
    }
    file.create_dataset(name, Type::u8, {all.size()});
    file.write(name, Type::u8, all);
    file.create_dataset(offsets_of(name), Type::i64, {offsets.size()});
    file.write(offsets_of(name), Type::i64, offsets);
}

} // namespace lockstep::h5
