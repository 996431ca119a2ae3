#include "comm/partition.hpp"

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
