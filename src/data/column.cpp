#include "column.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "decode.hpp"

namespace lockstep::data {

namespace {

/// Rows of so many bytes cost more to read one by one than to keep.
constexpr std::size_t small_row = 64;
/// Deflate makes no more than 1,032 bytes of one; whoever says so wants our memory.
constexpr std::uint64_t most_growth = 1040;

void swap_bytes(std::span<std::byte> elements, std::size_t width) {
    for (std::size_t at = 0; width > 1 && at + width <= elements.size(); at += width) {
        std::reverse(elements.data() + at, elements.data() + at + width);
    }
}

/// The product of two numbers, or more than any file has.
std::uint64_t bounded_product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    return b != 0 && a > most / b ? most : a * b;
}

std::uint64_t bounded_elements(std::span<std::uint64_t const> extents) {
    std::uint64_t count = 1;
    for (auto const extent : extents) {
        count = bounded_product(count, extent);
    }
    return count;
}

} // namespace

Column::Column(h5::File const& file, std::string const& name, std::uint64_t number, Keeping keeping,
               Row row)
    : name_(name), number_(number), storage_(file.storage(name)) {
    auto const fits = [&](h5::Type type, h5::Shape const& shape) {
        return bounded_product(bounded_elements(shape), h5::size_of(type)) <= keeping.room;
    };
    bool const in_place = storage_.obstacle.empty();
    if (!in_place) {
        auto const info = file.info(name);
        if (!info.readable_as || !fits(*info.readable_as, info.shape)) {
            throw Error(ExitCode::data, {concat("dataset ", name, " of ", file.path().string(),
                                                " cannot be read in place"),
                                         storage_.obstacle,
                                         concat("Convert it: lockstep data import hdf5 ",
                                                file.path().string(), " OUT.h5")});
        }
        keep_through_hdf5(file, *info.readable_as);
    }
    if (row == Row::dataset) {
        make_one_row();
    }
    measure();
    if (in_place) {
        require_within(std::filesystem::file_size(file.path()), file.path());
        if (keeping.small_rows && row_bytes_ <= small_row && fits(storage_.type, storage_.shape)) {
            keep(file);
        }
    }
    keeping.room -= kept_.size();
    view_ = kept_;
}

void Column::measure() {
    auto const& [shape, chunk] = std::tie(storage_.shape, storage_.chunk);
    element_bytes_ = h5::size_of(storage_.type);
    row_bytes_ = bounded_product(bounded_elements(std::span(shape).subspan(1)), element_bytes_);
    if (chunk.empty()) {
        return;
    }
    chunk_bytes_ = bounded_product(bounded_elements(chunk), element_bytes_);
    for (std::size_t d = 1; d < shape.size(); ++d) {
        chunks_in_row_ *= (shape[d] + chunk[d] - 1) / chunk[d];
    }
}

void Column::keep_through_hdf5(h5::File const& file, h5::Type type) {
    storage_ = {};
    storage_.type = type;
    storage_.shape = file.info(name_).shape;
    kept_.resize(h5::elements(storage_.shape) * h5::size_of(type));
    file.read(name_, type, kept_.data());
}

/// Gives the dataset an extent of 1 before its own: nothing that lies in the file moves.
void Column::make_one_row() {
    storage_.shape.insert(storage_.shape.begin(), 1);
    if (!storage_.chunk.empty()) {
        storage_.chunk.insert(storage_.chunk.begin(), 1);
    }
}

void Column::keep(h5::File const& file) {
    std::vector<std::byte> all(static_cast<std::size_t>(rows()) * row_bytes_);
    ChunkCache cache(0);
    Scratch scratch;
    read_from(File::open_read(file.path()), {0, rows()}, all, cache, scratch);
    kept_ = std::move(all);
}

void Column::require_within(std::uint64_t file_bytes, std::filesystem::path const& path) const {
    auto const refuse = [&](std::string const& what) {
        throw Error(ExitCode::data, {path.string(),
                                     concat(what, " of dataset ", name_, " not end within its ",
                                            file_bytes, " bytes"),
                                     "The file was cut short: make or copy it again"});
    };
    if (storage_.chunk.empty()) {
        auto const bytes =
            bounded_product(bounded_elements(storage_.shape), h5::size_of(storage_.type));
        if (storage_.offset > file_bytes || bytes > file_bytes - storage_.offset) {
            refuse("the samples do");
        }
        return;
    }
    for (std::uint64_t place = 0; place < storage_.chunks.size(); ++place) {
        auto const& chunk = storage_.chunks[place];
        auto const rows = rows_of(place);
        auto const what =
            concat("samples ", rows.first, " to ", rows.first + rows.count - 1, " (a chunk) do");
        if (chunk.bytes > file_bytes || chunk.at > file_bytes - chunk.bytes) {
            refuse(what);
        }
        bool const plausible = storage_.filters.empty()
                                   ? chunk.bytes == 0 || chunk.bytes == chunk_bytes_
                                   : chunk_bytes_ / most_growth <= file_bytes;
        if (!plausible) {
            refuse(what);
        }
    }
}

std::int64_t Column::rows_together() const noexcept {
    return storage_.chunk.empty() || !view_.empty()
               ? 1
               : static_cast<std::int64_t>(storage_.chunk.front());
}

Span Column::rows_of(std::uint64_t place) const {
    auto const extent = static_cast<std::int64_t>(storage_.chunk.front());
    auto const first = static_cast<std::int64_t>(place / chunks_in_row_) * extent;
    return {first, std::min(extent, rows() - first)};
}

/// Whether the rows in a chunk are rows of the dataset, side by side.
bool Column::whole_rows() const {
    return std::equal(storage_.chunk.begin() + 1, storage_.chunk.end(), storage_.shape.begin() + 1);
}

void Column::read(FilePool const& files, std::size_t file, Span rows, std::span<std::byte> into,
                  ChunkCache& cache, Scratch& scratch) const {
    if (view_.empty()) {
        read_from(*files.get(file), rows, into, cache, scratch);
    } else {
        std::memcpy(into.data(), view_.data() + static_cast<std::uint64_t>(rows.first) * row_bytes_,
                    into.size());
    }
}

void Column::read_from(File const& file, Span rows, std::span<std::byte> into, ChunkCache& cache,
                       Scratch& scratch) const {
    auto const begin = static_cast<std::uint64_t>(rows.first) * row_bytes_;
    if (storage_.chunk.empty()) {
        file.read_at(storage_.offset + begin, into);
    } else {
        read_chunks(file, rows, into, cache, scratch);
    }
    if (storage_.big_endian) {
        swap_bytes(into, element_bytes_);
    }
}

void Column::read_chunks(File const& file, Span rows, std::span<std::byte> into, ChunkCache& cache,
                         Scratch& scratch) const {
    auto const extent = storage_.chunk.front();
    auto const first = static_cast<std::uint64_t>(rows.first) / extent * chunks_in_row_;
    auto const last =
        (static_cast<std::uint64_t>(rows.first + rows.count - 1) / extent + 1) * chunks_in_row_;
    bool const direct = storage_.filters.empty() && whole_rows();
    for (auto place = first; place < last; ++place) {
        if (direct && storage_.chunks[place].bytes > 0) {
            auto const there = rows_of(place);
            auto const begin = std::max(rows.first, there.first);
            auto const end = std::min(rows.first + rows.count, there.first + there.count);
            file.read_at(storage_.chunks[place].at +
                             static_cast<std::uint64_t>(begin - there.first) * row_bytes_,
                         into.subspan(static_cast<std::size_t>(begin - rows.first) * row_bytes_,
                                      static_cast<std::size_t>(end - begin) * row_bytes_));
            continue;
        }
        auto const chunk =
            cache.get({number_, place}, [&] { return decoded(file, place, scratch); });
        copy_rows(place, *chunk, rows, into);
    }
}

ChunkCache::Bytes Column::decoded(File const& file, std::uint64_t place, Scratch& scratch) const {
    auto const& chunk = storage_.chunks[place];
    auto const rows = rows_of(place);
    ChunkCache::Bytes bytes(chunk_bytes_);
    if (chunk.bytes == 0) {
        for (std::size_t at = 0; at < bytes.size(); at += element_bytes_) {
            std::memcpy(bytes.data() + at, storage_.fill.data(), element_bytes_);
        }
        return bytes;
    }
    bool partial = false;
    auto rest = place;
    for (std::size_t d = storage_.shape.size(); d-- > 0;) {
        auto const along = (storage_.shape[d] + storage_.chunk[d] - 1) / storage_.chunk[d];
        partial = partial || (rest % along + 1) * storage_.chunk[d] > storage_.shape[d];
        rest /= along;
    }
    std::vector<h5::Filter> applied;
    for (std::size_t i = 0; i < storage_.filters.size(); ++i) {
        if ((chunk.skipped >> i & 1U) == 0 && (!partial || storage_.partial_chunks_filtered)) {
            applied.push_back(storage_.filters[i]);
        }
    }
    scratch.stored.resize(chunk.bytes);
    file.read_at(chunk.at, scratch.stored);
    try {
        decode_chunk(applied, element_bytes_, scratch.stored, scratch.spare, bytes);
    } catch (Error const& error) {
        throw Error(error.code(), {concat("the chunk of samples ", rows.first, " to ",
                                          rows.first + rows.count - 1, " of dataset ", name_,
                                          " in ", file.path().string(), " at byte ", chunk.at),
                                   error.text().what, error.text().next});
    }
    return bytes;
}

void Column::copy_rows(std::uint64_t place, std::span<std::byte const> chunk, Span rows,
                       std::span<std::byte> into) const {
    auto const dimensions = storage_.shape.size();
    // What of the chunk is wanted: in each dimension the first element there, its place in the
    // chunk, and how many.
    std::vector<std::uint64_t> origin(dimensions);
    std::vector<std::uint64_t> count(dimensions);
    auto rest = place;
    for (std::size_t d = dimensions; d-- > 0;) {
        auto const along = (storage_.shape[d] + storage_.chunk[d] - 1) / storage_.chunk[d];
        origin[d] = rest % along * storage_.chunk[d];
        count[d] = std::min(storage_.chunk[d], storage_.shape[d] - origin[d]);
        rest /= along;
    }
    auto const first = std::max(origin[0], static_cast<std::uint64_t>(rows.first));
    auto const end =
        std::min(origin[0] + count[0], static_cast<std::uint64_t>(rows.first + rows.count));
    if (first >= end) {
        return;
    }
    auto const skipped = first - origin[0];
    count[0] = end - first;
    if (whole_rows()) {
        std::memcpy(into.data() + (first - static_cast<std::uint64_t>(rows.first)) * row_bytes_,
                    chunk.data() + skipped * row_bytes_, count[0] * row_bytes_);
        return;
    }
    std::vector<std::uint64_t> at(dimensions, 0);
    auto const run = count.back();
    while (true) {
        std::uint64_t from = at[0] + skipped;
        std::uint64_t to = first - static_cast<std::uint64_t>(rows.first) + at[0];
        for (std::size_t d = 1; d < dimensions; ++d) {
            from = from * storage_.chunk[d] + at[d];
            to = to * storage_.shape[d] + origin[d] + at[d];
        }
        std::memcpy(into.data() + to * element_bytes_, chunk.data() + from * element_bytes_,
                    run * element_bytes_);
        std::size_t d = dimensions - 1;
        while (d-- > 0 && ++at[d] == count[d]) {
            at[d] = 0;
            if (d == 0) {
                return;
            }
        }
    }
}

} // namespace lockstep::data
