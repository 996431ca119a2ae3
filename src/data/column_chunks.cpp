#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstring>

#include "column.hpp"
#include "decode.hpp"

namespace lockstep::data {

Span Column::rows_of(std::uint64_t place) const {
    auto const extent = static_cast<std::int64_t>(form_->chunk.front());
    auto const first = static_cast<std::int64_t>(place / chunks_in_row_) * extent;
    return {first, std::min(extent, rows() - first)};
}

/// Whether the rows in a chunk are rows of the dataset, contiguous.
bool Column::whole_rows() const {
    return std::equal(form_->chunk.begin() + 1, form_->chunk.end(), form_->shape.begin() + 1);
}

void Column::read_chunks(File const& file, Span rows, std::span<std::byte> into, ChunkCache& cache,
                         Scratch& scratch) const {
    auto const extent = form_->chunk.front();
    auto const first = static_cast<std::uint64_t>(rows.first) / extent * chunks_in_row_;
    auto const last =
        (static_cast<std::uint64_t>(rows.first + rows.count - 1) / extent + 1) * chunks_in_row_;
    bool const direct = form_->filters.empty() && whole_rows();
    for (auto place = first; place < last; ++place) {
        if (direct && chunks_[place].bytes > 0) {
            auto const there = rows_of(place);
            auto const begin = std::max(rows.first, there.first);
            auto const end = std::min(rows.first + rows.count, there.first + there.count);
            file.read_at(chunks_[place].at +
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
    auto const& chunk = chunks_[place];
    auto const rows = rows_of(place);
    ChunkCache::Bytes bytes(chunk_bytes_);
    if (chunk.bytes == 0) {
        for (std::size_t at = 0; at < bytes.size(); at += element_bytes_) {
            std::memcpy(bytes.data() + at, form_->fill.data(), element_bytes_);
        }
        return bytes;
    }
    bool partial = false;
    auto rest = place;
    for (std::size_t d = form_->shape.size(); d-- > 0;) {
        auto const along = (form_->shape[d] + form_->chunk[d] - 1) / form_->chunk[d];
        partial = partial || (rest % along + 1) * form_->chunk[d] > form_->shape[d];
        rest /= along;
    }
    std::vector<h5::Filter> applied;
    for (std::size_t i = 0; i < form_->filters.size(); ++i) {
        if ((chunk.skipped >> i & 1U) == 0 && (!partial || form_->partial_chunks_filtered)) {
            applied.push_back(form_->filters[i]);
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
    auto const dimensions = form_->shape.size();
    // What of the chunk is wanted: in each dimension the first element there, its place in the
    // chunk, and how many.
    std::vector<std::uint64_t> origin(dimensions);
    std::vector<std::uint64_t> count(dimensions);
    auto rest = place;
    for (std::size_t d = dimensions; d-- > 0;) {
        auto const along = (form_->shape[d] + form_->chunk[d] - 1) / form_->chunk[d];
        origin[d] = rest % along * form_->chunk[d];
        count[d] = std::min(form_->chunk[d], form_->shape[d] - origin[d]);
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
            from = from * form_->chunk[d] + at[d];
            to = to * form_->shape[d] + origin[d] + at[d];
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
