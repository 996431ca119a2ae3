#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::comm {

/// Elements [first, last) of an arena.
struct Range {
    std::int64_t first = 0;
    std::int64_t last = 0;

    std::int64_t count() const noexcept { return last - first; }
    friend bool operator==(Range const&, Range const&) = default;
};

/// Elements whose squares are summed as one, and the unit in which arenas are cut: norms are sums
/// over these fixed reduction blocks in a fixed tree, so that they do not depend on which rank owns
/// which elements.
constexpr std::int64_t reduction_block = 4096;

/// How an arena is cut: into buckets, which are sent one after the other while backward still runs,
/// and each bucket into shards, one per rank, so that every rank takes part in every bucket. All
/// bounds are whole reduction blocks. A pure function of its arguments.
class Partition {
  public:
    /// Buckets of `bucket` elements, the first of `first_bucket`, rounded up to reduction blocks.
    Partition(std::int64_t size, int ranks, std::int64_t first_bucket, std::int64_t bucket);

    std::int64_t size() const noexcept { return bounds_.back(); }
    std::int64_t reduction_blocks() const noexcept { return size() / reduction_block; }
    int ranks() const noexcept { return ranks_; }
    int buckets() const noexcept { return static_cast<int>(bounds_.size()) - 1; }

    Range bucket(int index) const;
    /// The part of a bucket that `rank` sums and updates; may be empty.
    Range shard(int index, int rank) const;
    /// All non-empty shards of a rank; neighbours are joined.
    std::vector<Range> owned(int rank) const;

  private:
    int ranks_;
    std::vector<std::int64_t> bounds_; ///< [buckets + 1]
};

} // namespace lockstep::comm
