#include "extent.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <hdf5.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "space.hpp"

namespace lockstep::h5 {

namespace {

constexpr std::uint64_t max_chunk = std::uint64_t{512} << 20;
/// Elements that were never written: of a file that is being filled there may be many.
constexpr std::uint64_t max_unwritten = std::uint64_t{64} << 20;
constexpr std::uint64_t max_unwritten_of_written = 64; ///< besides, for each byte that was written

/// The bytes of so many elements, or the largest number if no number holds them.
std::uint64_t bytes_of(std::span<hsize_t const> extents, std::uint64_t element) {
    std::uint64_t bytes = element;
    for (auto const extent : extents) {
        if (extent != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / extent) {
            return std::numeric_limits<std::uint64_t>::max();
        }
        bytes *= extent;
    }
    return bytes;
}

[[noreturn]] void refuse(std::string const& path, std::filesystem::path const& holder,
                         std::string const& why, std::string const& next) {
    throw Error(ExitCode::data, {concat("dataset ", path, " of ", holder.string()), why, next});
}

/// The extents of a chunk; none where the dataset is not chunked.
std::vector<hsize_t> chunk_of(Handle const& creation, std::size_t dimensions) {
    if (H5Pget_layout(creation.id()) != H5D_CHUNKED) {
        return {};
    }
    std::vector<hsize_t> chunk(dimensions);
    check(H5Pget_chunk(creation.id(), static_cast<int>(dimensions), chunk.data()), Doing::reading,
          "H5Pget_chunk");
    return chunk;
}

/// The bytes of a dataset that its file has, before filters.
std::uint64_t written(Handle const& dataset, Handle const& space, std::uint64_t chunk) {
    if (chunk == 0) {
        return H5Dget_storage_size(dataset.id());
    }
    hsize_t chunks = 0;
    check(H5Dget_num_chunks(dataset.id(), space.id(), &chunks), Doing::reading,
          "H5Dget_num_chunks");
    return chunks > std::numeric_limits<std::uint64_t>::max() / chunk
               ? std::numeric_limits<std::uint64_t>::max()
               : chunks * chunk;
}

} // namespace

void require_bounded(Handle const& dataset, Handle const& creation, std::string const& path,
                     std::filesystem::path const& holder) {
    Handle const type{check(H5Dget_type(dataset.id()), Doing::reading, "H5Dget_type"), H5Tclose};
    auto const element = static_cast<std::uint64_t>(H5Tget_size(type.id()));
    auto const space = space_of_dataset(dataset);
    auto const shape = shape_of(space);
    auto const chunk = chunk_of(creation, shape.size());
    auto const chunk_bytes = chunk.empty() ? 0 : bytes_of(chunk, element);
    if (chunk_bytes > max_chunk) {
        refuse(path, holder,
               concat("its chunks have ", bytes_text(chunk_bytes),
                      " each, and a chunk is read as a whole, so at most ", bytes_text(max_chunk),
                      " are allowed"),
               concat("Write the file with smaller chunks, such as one sample each: h5repack -l ",
                      path, ":CHUNK=1x... OLD NEW"));
    }
    auto const all = bytes_of(std::vector<hsize_t>(shape.begin(), shape.end()), element);
    if (all <= max_unwritten || H5Pget_layout(creation.id()) == H5D_COMPACT ||
        H5Pget_external_count(creation.id()) > 0) {
        return;
    }
    auto const there = written(dataset, space, chunk_bytes);
    auto const fill = all - std::min(there, all);
    if (fill > max_unwritten && (fill - max_unwritten) / max_unwritten_of_written > there) {
        refuse(path, holder,
               concat("it has the shape ", shape_text(shape), ", but only ", bytes_text(there),
                      " of its ", bytes_text(all), " were written: the rest is a fill value"),
               "Write its samples, or shrink the dataset to the samples that it has");
    }
}

} // namespace lockstep::h5
