#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::h5 {

/// The element types that we know, all little-endian in our files.
enum class Type { u8, i16, i32, i64, u64, f16, f32, f64, i8, u16, u32 };

/// Extents, the slowest dimension first; empty for a scalar.
using Shape = std::vector<std::uint64_t>;

/// As people read it: "[60000, 28, 28]".
std::string shape_text(Shape const& shape);

/// An HDF5 filter that the bytes of a chunk passed through when they were written.
enum class Filter { deflate, shuffle, fletcher32 };

/// Where the bytes of a chunk lie in the file.
struct Chunk {
    std::uint64_t at = 0;      ///< byte of the file
    std::uint32_t bytes = 0;   ///< as stored; 0: never written, so that it holds the fill value
    std::uint32_t skipped = 0; ///< bit i: filter i was not applied to it
};

/// How the elements of a dataset lie in a file: all that is needed to read them without HDF5.
struct Storage {
    std::string
        obstacle; ///< why they cannot be read so; empty: they can, and the members below are valid
    std::filesystem::path
        file; ///< that has the bytes; not the one that was opened where links lead elsewhere
    Type type = Type::u8;                ///< of an element
    bool big_endian = false;             ///< byte order of an element
    Shape shape;                         ///< of the dataset, in elements
    std::uint64_t offset = 0;            ///< byte of the file it begins at, where it is not chunked
    Shape chunk;                         ///< extents of a chunk, in elements; empty: not chunked
    std::vector<Filter> filters;         ///< in the order in which they were applied
    bool partial_chunks_filtered = true; ///< also chunks that reach over the edge of the shape
    std::vector<Chunk> chunks;           ///< in row-major order of their positions
    bool unwritten = false;              ///< there are elements that were never written
    std::vector<std::byte> fill;         ///< an element that was never written, as it is stored
};

/// What a dataset's values come from, besides the file that was opened.
struct Origin {
    std::filesystem::path
        file; ///< that has the dataset; not the one that was opened where links lead elsewhere
    std::string name;        ///< of the dataset there
    bool is_virtual = false; ///< it is a view of datasets in `sources`, or in its own file
    std::vector<std::filesystem::path> sources; ///< other files that have its bytes
};

} // namespace lockstep::h5
