#pragma once

#include "import/source.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace lockstep::import {

/// A part as it lies on the disk.
struct PartFile {
    std::size_t set = 0;
    std::uint64_t first = 0; ///< sample of the set
    std::uint64_t samples = 0;
    std::filesystem::path path;
};

/// The parts of an import, which are joined into files in this order.
struct JoinPlan {
    ImportForm form; ///< with mean and std
    std::uint64_t identity = 0;
    int deflate = 0;             ///< 0: contiguous
    std::vector<PartFile> parts; ///< by set, and in a set one after the other
};

/// The samples of a set that make a file.
struct ShardPlan {
    std::size_t set = 0;
    std::uint64_t first = 0; ///< sample of the set
    std::uint64_t count = 0;
    std::filesystem::path path;
};

/// The files of a set: one, or NAME-00000-of-00012.h5, … of at most `shard_samples` samples.
std::vector<ShardPlan> plan_shards(std::filesystem::path const& whole, std::size_t set,
                                   std::uint64_t samples, std::int64_t shard_samples);

/// Writes a file from the parts that hold its samples. Returns its size.
///
/// Throws  Error 73 or 74
std::uint64_t write_shard(JoinPlan const& plan, ShardPlan const& shard);

} // namespace lockstep::import
