#include <algorithm>

#include "field.hpp"

namespace lockstep::data {

namespace {

std::size_t aligned(std::size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

} // namespace

template <class Columns, class Bytes, class Use>
void Field::for_columns_on_disk(Columns& columns, std::span<Bytes> memory, Use use) {
    for (std::size_t file = 0; file < columns.size(); ++file) {
        if (columns[file].view().empty()) {
            use(file, columns[file], memory.first(columns[file].bytes()));
            memory = memory.subspan(aligned(columns[file].bytes()));
        }
    }
}

std::vector<Column const*> Field::columns_of(std::size_t file) const {
    std::vector<Column const*> columns{&columns_[file]};
    if (info_.ragged) {
        columns.push_back(&offsets_[file]);
    }
    return columns;
}

std::uint64_t Field::bytes_stored(std::size_t first, std::size_t last) const {
    std::uint64_t bytes = 0;
    for (auto file = first; file < last; ++file) {
        for (auto const* const column : columns_of(file)) {
            for (auto const& range : column->stored()) {
                bytes += range.count;
            }
        }
    }
    return bytes;
}

void Field::add_files_on_disk(std::set<std::size_t>& numbers) const {
    for (auto const* const columns : {&columns_, &offsets_}) {
        for (auto const& column : *columns) {
            if (column.view().empty()) {
                numbers.insert(column.file());
            }
        }
    }
}

std::size_t Field::bytes_on_disk() const {
    std::size_t bytes = 0;
    for (auto const& column : columns_) {
        bytes += column.view().empty() ? aligned(column.bytes()) : 0;
    }
    return bytes;
}

void Field::fill(Source& source, std::span<std::byte> memory, int which, int parts) const {
    constexpr std::size_t at_once = std::size_t{4} << 20;
    Scratch scratch;
    for_columns_on_disk(
        columns_, memory, [&](std::size_t, Column const& column, std::span<std::byte> bytes) {
            // Whole chunks, so that no two ranks decode one.
            auto const together = column.rows_together();
            auto const blocks = (column.rows() + together - 1) / together;
            auto const end = std::min(blocks * (which + 1) / parts * together, column.rows());
            auto const step =
                std::max<std::int64_t>(static_cast<std::int64_t>(
                                           at_once / std::max<std::size_t>(column.row_bytes(), 1)) /
                                           together,
                                       1) *
                together;
            for (auto row = blocks * which / parts * together; row < end; row += step) {
                auto const count = std::min(step, end - row);
                column.read(source.files, {row, count},
                            bytes.subspan(static_cast<std::size_t>(row) * column.row_bytes(),
                                          static_cast<std::size_t>(count) * column.row_bytes()),
                            source.cache, scratch);
            }
        });
}

void Field::read_from_memory(std::span<std::byte const> memory) {
    for_columns_on_disk(columns_, memory,
                        [](std::size_t, Column& column, std::span<std::byte const> bytes) {
                            column.read_from_memory(bytes);
                        });
}

} // namespace lockstep::data
