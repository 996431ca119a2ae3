#include "column.hpp"

#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace lockstep::data {

namespace {

/// Rows of so many bytes cost more to read one by one than to keep.
constexpr std::size_t small_row = 64;
/// Deflate makes no more than 1,032 bytes of one; whoever says so wants our memory.
constexpr std::uint64_t max_growth = 1040;

void swap_bytes(std::span<std::byte> elements, std::size_t width) {
    for (std::size_t at = 0; width > 1 && at + width <= elements.size(); at += width) {
        std::reverse(elements.data() + at, elements.data() + at + width);
    }
}

/// The product of two numbers, or more than any file has.
std::uint64_t bounded_product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t max = std::uint64_t{1} << 62;
    return b != 0 && a > max / b ? max : a * b;
}

std::uint64_t bounded_elements(std::span<std::uint64_t const> extents) {
    std::uint64_t count = 1;
    for (auto const extent : extents) {
        count = bounded_product(count, extent);
    }
    return count;
}

bool fits(h5::Type type, h5::Shape const& shape, std::size_t room) {
    return bounded_product(bounded_elements(shape), h5::size_of(type)) <= room;
}

/// Whether two datasets differ in nothing but the places of their bytes.
bool alike(h5::Storage const& a, h5::Storage const& b) {
    auto const form = [](h5::Storage const& storage) {
        return std::tie(storage.type, storage.big_endian, storage.shape, storage.chunk,
                        storage.filters, storage.partial_chunks_filtered, storage.fill);
    };
    return form(a) == form(b);
}

/// Gives a dataset an extent of 1 before its own: nothing that lies in the file moves.
void make_one_row(h5::Storage& storage) {
    storage.shape.insert(storage.shape.begin(), 1);
    if (!storage.chunk.empty()) {
        storage.chunk.insert(storage.chunk.begin(), 1);
    }
}

} // namespace

Column::Column(h5::File const& file, std::string const& name, Context context, Form form)
    : name_(name), number_(context.number++) {
    auto storage = file.storage(name);
    bool const in_place = storage.obstacle.empty();
    unwritten_ = storage.unwritten;
    auto const holder = in_place ? std::exchange(storage.file, {}) : file.path();
    if (!in_place) {
        storage = keep_through_hdf5(file, context.room, storage.obstacle);
    }
    if (form.row == Row::dataset) {
        make_one_row(storage);
    }
    take(std::move(storage), form.before);
    file_ = context.files.number_of(holder);
    in_place_ = in_place;
    linked_ = holder != file.path();
    if (in_place) {
        require_within(std::filesystem::file_size(holder), holder);
        if (form.kept_if_small && row_bytes_ <= small_row &&
            fits(form_->type, form_->shape, context.room_for_small)) {
            keep(holder);
        }
    }
    (in_place ? context.room_for_small : context.room) -= kept_.size();
    view_ = kept_;
}

void Column::take(h5::Storage&& storage, Column const* before) {
    offset_ = std::exchange(storage.offset, 0);
    own_chunks_ = std::exchange(storage.chunks, {});
    chunks_ = own_chunks_;
    bool const shared = before != nullptr && alike(*before->form_, storage);
    form_ = shared ? before->form_ : std::make_shared<h5::Storage const>(std::move(storage));
    measure();
}

void Column::measure() {
    auto const& [shape, chunk] = std::tie(form_->shape, form_->chunk);
    element_bytes_ = h5::size_of(form_->type);
    row_bytes_ = bounded_product(bounded_elements(std::span(shape).subspan(1)), element_bytes_);
    if (chunk.empty()) {
        return;
    }
    chunk_bytes_ = bounded_product(bounded_elements(chunk), element_bytes_);
    for (std::size_t d = 1; d < shape.size(); ++d) {
        chunks_in_row_ *= (shape[d] + chunk[d] - 1) / chunk[d];
    }
}

h5::Storage Column::keep_through_hdf5(h5::File const& file, std::size_t room,
                                      std::string const& obstacle) {
    auto const info = file.info(name_);
    if (!info.readable_as || !fits(*info.readable_as, info.shape, room)) {
        refuse_to_keep(file.path(), obstacle);
    }
    h5::Storage storage;
    storage.type = *info.readable_as;
    storage.shape = info.shape;
    kept_.resize(h5::elements(storage.shape) * h5::size_of(storage.type));
    file.read(name_, storage.type, kept_);
    return storage;
}

void Column::refuse_to_keep(std::filesystem::path const& path, std::string const& obstacle) const {
    throw Error(
        ExitCode::data,
        {concat("dataset ", name_, " of ", path.string(), " cannot be read directly from the file"),
         obstacle,
         concat("Convert the file: lockstep data import hdf5 ", path.string(), " OUT.h5")});
}

void Column::keep(std::filesystem::path const& file) {
    std::vector<std::byte> all(static_cast<std::size_t>(rows()) * row_bytes_);
    ChunkCache cache(0);
    Scratch scratch;
    read_from(File::open_read(file), {0, rows()}, all, cache, scratch);
    kept_ = std::move(all);
}

void Column::require_within(std::uint64_t file_bytes, std::filesystem::path const& path) const {
    auto const refuse = [&](std::string const& what) {
        throw Error(ExitCode::data,
                    {concat(path.string(), " is truncated or damaged"),
                     concat(what, " of dataset ", name_,
                            " should lie beyond its end, which is at byte ", file_bytes),
                     "Copy the file again from its source, or import the data again"});
    };
    if (form_->chunk.empty()) {
        auto const bytes =
            bounded_product(bounded_elements(form_->shape), h5::size_of(form_->type));
        if (offset_ > file_bytes || bytes > file_bytes - offset_) {
            refuse("the samples");
        }
        return;
    }
    for (std::uint64_t place = 0; place < chunks_.size(); ++place) {
        auto const& chunk = chunks_[place];
        auto const rows = rows_of(place);
        auto const what =
            concat("samples ", rows.first, " to ", rows.first + rows.count - 1, " (a chunk)");
        if (chunk.bytes > file_bytes || chunk.at > file_bytes - chunk.bytes) {
            refuse(what);
        }
        bool const plausible = form_->filters.empty()
                                   ? chunk.bytes == 0 || chunk.bytes == chunk_bytes_
                                   : chunk_bytes_ / max_growth <= file_bytes;
        if (!plausible) {
            refuse(what);
        }
    }
}

std::vector<ByteRange> Column::stored() const {
    std::vector<ByteRange> ranges;
    if (in_place_ && form_->chunk.empty()) {
        ranges.push_back({offset_, bytes()});
    }
    for (auto const& chunk : chunks_) {
        ranges.push_back({chunk.at, chunk.bytes});
    }
    return ranges;
}

std::string Column::form_text() const {
    auto text = concat(h5::name_of(form_->type), form_->big_endian ? " swapped" : "", " [");
    for (auto const* const extents : {&form_->shape, &form_->chunk}) {
        for (auto const extent : *extents) {
            text += concat(extent, " ");
        }
        text += "] [";
    }
    for (auto const filter : form_->filters) {
        text += concat(static_cast<int>(filter), " ");
    }
    std::uint64_t bytes = 0;
    for (auto const& range : stored()) {
        bytes += range.count;
    }
    return concat(text, "] ", bytes);
}

void Column::find_checksums(h5::File const& file) {
    if (!in_place_) {
        return;
    }
    if (!linked_) {
        checksums_ = checksums_in(file, name_, bytes());
        return;
    }
    auto const origin = file.origin(name_);
    if (origin.sources.empty()) {
        checksums_ = checksums_in(h5::File::open(origin.file), origin.name, bytes());
    }
}

std::int64_t Column::rows_together() const noexcept {
    return form_->chunk.empty() || !view_.empty() ? 1
                                                  : static_cast<std::int64_t>(form_->chunk.front());
}

void Column::read(FilePool const& files, Span rows, std::span<std::byte> into, ChunkCache& cache,
                  Scratch& scratch) const {
    if (view_.empty()) {
        read_from(*files.get(file_), rows, into, cache, scratch);
    } else {
        std::memcpy(into.data(), view_.data() + static_cast<std::uint64_t>(rows.first) * row_bytes_,
                    into.size());
    }
}

void Column::read_from(File const& file, Span rows, std::span<std::byte> into, ChunkCache& cache,
                       Scratch& scratch) const {
    auto const begin = static_cast<std::uint64_t>(rows.first) * row_bytes_;
    if (form_->chunk.empty()) {
        file.read_at(offset_ + begin, into);
    } else {
        read_chunks(file, rows, into, cache, scratch);
    }
    if (form_->big_endian) {
        swap_bytes(into, element_bytes_);
    }
}

} // namespace lockstep::data
