#include "comm/partition.hpp"

#include <algorithm>
#include <vector>

#include "catch.hpp"

using namespace lockstep;
using comm::reduction_block;

TEST_CASE("buckets and shards tile an arena in whole reduction_blocks") {
    for (int const ranks : {1, 2, 3, 8}) {
        comm::Partition const partition(23 * reduction_block, ranks, 2 * reduction_block,
                                        7 * reduction_block - 5);
        CHECK(partition.bucket(0) == comm::Range{0, 2 * reduction_block});
        CHECK(partition.bucket(1).count() == 7 * reduction_block);
        std::int64_t next = 0;
        for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
            for (int rank = 0; rank < ranks; ++rank) {
                auto const shard = partition.shard(bucket, rank);
                CHECK(shard.first == next);
                CHECK(shard.last % reduction_block == 0);
                next = shard.last;
            }
            CHECK(next == partition.bucket(bucket).last);
        }
        CHECK(next == partition.size());
    }
}

TEST_CASE("with more ranks than blocks, ranks and hosts own about as much as each other") {
    constexpr int ranks = 8192;
    comm::Partition const partition(std::int64_t{90'000} * reduction_block, ranks,
                                    64 * reduction_block, 1600 * reduction_block);
    // Of each of 8 columns (one rank per host), the hosts whose numbers end with the same bits.
    std::vector<std::int64_t> of_group(std::size_t{8} * 16, 0);
    std::int64_t max = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        std::int64_t own = 0;
        for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
            own += partition.shard(bucket, rank).count() / reduction_block;
        }
        max = std::max(max, own);
        of_group[static_cast<std::size_t>(rank % 8 * 16 + rank / 8 % 16)] += own;
    }
    CHECK(max <= 13); // of 11 on average
    auto const mean = static_cast<double>(partition.reduction_blocks()) / (8 * 16);
    for (auto const each : of_group) {
        CHECK(static_cast<double>(each) < 1.15 * mean);
    }
}
