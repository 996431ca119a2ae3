#pragma once

#include "base/file.hpp"
#include "data/format.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::data {

constexpr std::uint64_t checksum_block = std::uint64_t{1} << 20; ///< bytes under one checksum

/// How many blocks, each with a checksum, `bytes` bytes have.
constexpr std::uint64_t checksum_blocks(std::uint64_t bytes) {
    return (bytes + checksum_block - 1) / checksum_block;
}

/// Hashes of the blocks of `bytes`.
std::vector<std::uint64_t> block_checksums(std::span<std::byte const> bytes);

/// Where the checksums of a dataset of `bytes` bytes lie in a file of ours; an empty range in
/// another file, or where it has none.
///
/// Throws  Error 65 when they do not match the dataset
ByteRange checksums_in(h5::File const& file, std::string name, std::uint64_t bytes);

/// The ranges with checksums in a file of ours; the last is the checksum of all other bytes. None
/// in another file.
///
/// Throws  Error 65 when one of them does not lie within the file
std::optional<std::vector<ByteRange>> covered_ranges(h5::File const& file);

/// Datasets that somebody has added to a file of ours since it was made, sample weights, say: the
/// last checksum, which covers names, shapes and attributes, then no longer matches. Empty for
/// another file.
std::vector<std::string> added_datasets(h5::File const& file);

/// Hash of all bytes of the file that lie in none of the ranges.
std::uint64_t checksum_outside(File const& file, std::vector<ByteRange> ranges);

/// Compares `checksum_outside` with the checksum that is stored in the last of the ranges.
///
/// Throws  Error 65 where they differ
void require_rest(File const& file, std::vector<ByteRange> const& covered);

} // namespace lockstep::data
