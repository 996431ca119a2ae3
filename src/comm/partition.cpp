#include "comm/partition.hpp"

#include <algorithm>
#include <cstdint>

namespace lockstep::comm {

namespace {

std::int64_t whole_blocks(std::int64_t elements) {
    return std::max<std::int64_t>((elements + reduction_block - 1) / reduction_block, 1) *
           reduction_block;
}

} // namespace

Partition::Partition(std::int64_t size, int ranks, std::int64_t first_bucket, std::int64_t bucket)
    : ranks_(ranks), bounds_{0} {
    auto next = whole_blocks(first_bucket);
    while (bounds_.back() + next < size) {
        bounds_.push_back(bounds_.back() + next);
        next = whole_blocks(bucket);
    }
    bounds_.push_back(size);
}

Range Partition::bucket(int index) const {
    auto const at = static_cast<std::size_t>(index);
    return {bounds_[at], bounds_[at + 1]};
}

/// Which ranks get a block more than others is another matter in each bucket: with more ranks than
/// blocks, the same ones would otherwise own all, and so would their hosts' links carry.
Range Partition::shard(int index, int rank) const {
    auto const whole = bucket(index);
    auto const count = whole.count() / reduction_block;
    // Multiples of the golden ratio fall evenly, however many there are.
    auto const turn = static_cast<std::uint32_t>(index) * std::uint32_t{2654435769};
    auto const offset =
        static_cast<std::int64_t>((std::uint64_t{turn} * static_cast<std::uint64_t>(ranks_)) >> 32);
    return {whole.first + (count * rank + offset) / ranks_ * reduction_block,
            whole.first + (count * (rank + 1) + offset) / ranks_ * reduction_block};
}

std::vector<Range> Partition::owned(int rank) const {
    std::vector<Range> all;
    for (int index = 0; index < buckets(); ++index) {
        auto const range = shard(index, rank);
        if (range.count() == 0) {
            continue;
        }
        if (!all.empty() && all.back().last == range.first) {
            all.back().last = range.last;
        } else {
            all.push_back(range);
        }
    }
    return all;
}

} // namespace lockstep::comm
