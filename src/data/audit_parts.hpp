#pragma once

#include "base/hash.hpp"
#include "data/audit.hpp"
#include "data/checksums.hpp"
#include "data/format.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "dataset_parts.hpp"

namespace lockstep::data {

/// One dataset in a run of files.
struct Audit::Group {
    Dataset const* set = nullptr;
    Field const* field = nullptr; ///< null: the bytes of the only file that belong to no dataset
    std::size_t first = 0;        ///< of the files
    std::size_t last = 0;         ///< one after
    bool recorded = false;
    bool ours = true;        ///< no other host walks through it
    std::uint64_t stamp = 0; ///< of sizes and times
    std::uint64_t form = 0;  ///< of how the bytes lie
    std::uint64_t full = 0;  ///< of all bytes; 0: not known yet
    std::uint64_t expected = 0;
    std::vector<ByteRange>
        covered{}; ///< ranges with other checksums; the last is the checksum of all else
};

/// Where the walk is.
struct Audit::Walk {
    std::size_t group = 0;
    std::size_t file = 0;
    std::size_t column = 0;
    bool in_column = false;
    std::size_t range = 0;
    std::uint64_t at = 0;
    Hasher hasher{};
    std::vector<std::byte> block{};
    std::vector<ByteRange> ranges{}; ///< of the column
    std::vector<std::uint64_t> sums{};
};

/// The error for data that differs from the record of an older state.
Error changed_data(std::string const& dataset, std::filesystem::path const& file,
                   std::string const& where);

/// Files are combined into at most this many groups, so that a record does not grow with their
/// number.
inline constexpr std::size_t max_groups = 64;

} // namespace lockstep::data
