#pragma once

#include <cstdint>
#include <vector>

#include "column.hpp"
#include "file_pool.hpp"

namespace lockstep::data {

/// The files and caches that all fields of a data set read through.
struct Source {
    FilePool files;                 ///< those that were named, and those that their links lead to
    std::vector<std::size_t> named; ///< numbers of those that were named
    std::vector<std::int64_t> first_of_file; ///< number of their first samples in the data set
    std::int64_t samples = 0;
    ChunkCache cache{std::size_t{40} << 20};
    std::size_t room = std::size_t{16} << 20;           ///< for columns that only HDF5 can read
    std::size_t room_for_small = std::size_t{16} << 20; ///< for columns of small rows
    std::uint64_t columns = 0;                          ///< opened so far
    bool sample_per_file = false; ///< its datasets have no extent that counts samples

    /// The file that has a sample.
    std::size_t file_of(std::int64_t sample) const;
    std::int64_t end_of_file(std::size_t file) const;
    std::filesystem::path path_of(std::size_t file) const { return files.path(named[file]); }
};

} // namespace lockstep::data
