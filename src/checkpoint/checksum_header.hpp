#pragma once

#include "base/file.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace lockstep::checkpoint {

/// Bytes of the checksum header: the user block in front of HDF5's own bytes.
inline constexpr std::uint64_t checksum_header_bytes = 4096;

/// What proves that a file is complete and unchanged: its length and a hash of each block of all
/// its bytes after the checksum header, HDF5's metadata and the gaps between datasets included. The
/// checksum header hashes itself, and what it does not use of the user block is zero, so that no
/// bit of the file can change unnoticed.
///
/// As stored, little-endian: "LOCKSTEPSEAL", version (u32), length, bytes of a block, number of
/// blocks (u64 each), XXH3-64 of each block, XXH3-64 of all preceding bytes of the checksum header;
/// zeros to the end.
struct ChecksumHeader {
    static constexpr std::uint64_t max_blocks = 480;

    std::uint64_t length = 0;      ///< of the whole file
    std::uint64_t block_bytes = 0; ///< all blocks but the last are that long
    std::vector<std::uint64_t> hashes;

    /// A checksum header with all hashes zero. The block size is the smallest power of two of at
    /// least 64 KiB that makes at most 480 blocks.
    static ChecksumHeader for_length(std::uint64_t length);

    std::uint64_t first_byte(std::uint64_t block) const; ///< in the file
    std::uint64_t last_byte(std::uint64_t block) const;

    std::array<std::byte, checksum_header_bytes> encoded() const;
    /// Throws  Error 65 that names `path` unless every one of the bytes is as it was encoded
    static ChecksumHeader decoded(std::span<std::byte const, checksum_header_bytes> bytes,
                                  std::filesystem::path const& path);

    friend bool operator==(ChecksumHeader const&, ChecksumHeader const&) = default;
};

/// The checksum header of a file; whether the file's length and blocks agree with it is not
/// checked.
///
/// Throws  Error 65 when there is none or it is damaged
ChecksumHeader read_checksum_header(File const& file);

/// Throws Error 65 unless the file has a checksum header and the length that is recorded there.
void require_checksum_header(File const& file);

/// XXH3-64 of a block as it is in the file now.
///
/// Throws  Error 65 when the file ends before the block does
std::uint64_t hash_of_block(File const& file, ChecksumHeader const& checksums, std::uint64_t block);

/// Compares `bytes`, which were written at `offset`, with what is read back from the file. On the
/// way it hashes the blocks that lie wholly in that range: `known` becomes 1 for each, and
/// `checksums` gets its hash.
///
/// Shape    known [blocks of the checksum header]
/// Returns  the first byte, counted from `offset`, at which they differ; the length of `bytes` when
///          they do not
/// Throws   Error 65 when the file ends before
std::uint64_t read_back(File const& file, std::uint64_t offset, std::span<std::byte const> bytes,
                        ChecksumHeader& checksums, std::vector<std::uint64_t>& known);

/// Hashes all blocks of a finished file of one writer, writes the checksum header and syncs.
void write_checksum_header(File const& file);

} // namespace lockstep::checkpoint
