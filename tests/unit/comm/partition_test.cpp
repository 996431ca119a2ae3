#include "lockstep/comm/partition.hpp"

#include "catch.hpp"

using namespace lockstep;
using comm::grain;

TEST_CASE("buckets and pieces tile an arena in whole grains") {
    for (int const ranks : {1, 2, 3, 8}) {
        comm::Partition const partition(23 * grain, ranks, 2 * grain, 7 * grain - 5);
        CHECK(partition.bucket(0) == comm::Range{0, 2 * grain});
        CHECK(partition.bucket(1).count() == 7 * grain);
        std::int64_t next = 0;
        for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
            for (int rank = 0; rank < ranks; ++rank) {
                auto const piece = partition.piece(bucket, rank);
                CHECK(piece.first == next);
                CHECK(piece.last % grain == 0);
                next = piece.last;
            }
            CHECK(next == partition.bucket(bucket).last);
        }
        CHECK(next == partition.size());
    }
}
