#pragma once

#include "lockstep/h5/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace lockstep::h5 {

/// What is known of a dataset without reading it.
struct DatasetInfo {
    std::string path;
    std::optional<Type> type;        ///< absent: not a type of ours
    std::optional<Type> readable_as; ///< that type, or one of ours that holds its numbers
    Shape shape;
    bool contiguous = false;             ///< and allocated, unfiltered, as one block in this file
    std::optional<std::uint64_t> offset; ///< of its first byte in the file, where contiguous
};

/// Whether a transfer really was collective; if not, HDF5's own cause bits.
struct Transfer {
    bool collective = false;
    std::uint32_t cause = 0;
};

/// A part of a one-dimensional dataset that a rank has.
struct Part {
    std::uint64_t first = 0; ///< element that `bytes` begins with
    std::span<std::byte const> bytes;
};

/// A part of a file's dataset that appears under a name and shape of its own: a virtual dataset.
struct View {
    std::string path;   ///< of the new dataset; groups on the way are made
    std::string source; ///< path of the one-dimensional dataset in the same file
    std::uint64_t first = 0;
    Shape shape;
};

/// How a dataset lies in its file.
struct Layout {
    std::uint64_t chunk_rows = 0; ///< 0: one block, claimed at once and never filled
    int deflate = 0;              ///< 1 to 9: chunks are shuffled and deflated
    bool checksums = false;       ///< of each chunk, as HDF5 verifies them
};

} // namespace lockstep::h5
