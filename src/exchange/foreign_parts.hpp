#pragma once

#include "comm/partition.hpp"

#include <array>

namespace lockstep::train {

/// What other ranks own of a bucket: the parts before and behind the shard of `rank`, which may be
/// empty.
inline std::array<comm::Range, 2> foreign_parts(comm::Partition const& partition, int bucket,
                                                int rank) {
    auto const all = partition.bucket(bucket);
    auto const own = partition.shard(bucket, rank);
    return {comm::Range{all.first, own.first}, comm::Range{own.last, all.last}};
}

} // namespace lockstep::train
