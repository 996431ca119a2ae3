#include "comm/scaling_model.hpp"

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using comm::NetworkModel;
using comm::predict;
using comm::ScalingInputs;

namespace {

/// One host has four ranks, which slow each other from 80 to 100 ms of compute.
ScalingInputs inputs() {
    ScalingInputs given;
    given.alone = {.compute = 0.080, .backward = 0.050, .update = 0.040};
    given.together = {
        .compute = 0.100, .backward = 0.060, .sum = 0.006, .update = 0.010, .imbalance = 0.002};
    given.measured = 4;
    given.arena_bytes = 100e6;
    given.buckets = 4;
    given.between = {50e-6, 1e9};
    given.ranks_per_host = 4;
    given.batch = 32;
    return given;
}

} // namespace

TEST_CASE("one rank and the measured number of ranks come out as they were measured") {
    auto const one = predict(inputs(), 1);
    CHECK(one.step_s == Approx(0.120));
    CHECK(one.speed_up == 1);
    CHECK(one.samples_per_s == Approx(32 / 0.120));
    auto const four = predict(inputs(), 4);
    CHECK(four.step_s == Approx(0.100 + 0.006 + 0.010 + 0.002));
    CHECK(four.hosts == 1);
    CHECK(four.speed_up == Approx(4 * 0.120 / 0.118));
}

TEST_CASE("between hosts gradients cross the network twice") {
    auto const eight = predict(inputs(), 8);
    CHECK(eight.hosts == 2);
    // There and back a round, for which the four buckets wait together; in it, each sends a message
    // and takes one. Then the step's sums, there and back.
    CHECK(eight.between_s == Approx(2 * (2 * 50e-6 + 4 * 2 * 1.5e-6) + 2 * 0.5 * 100e6 / 1e9));
    CHECK(eight.parts.update == Approx(0.040 / 8));
    CHECK(eight.efficiency < predict(inputs(), 4).efficiency);
    CHECK(predict(inputs(), 1024).efficiency > 0);
    auto overlapping = inputs();
    overlapping.overlaps = true;
    CHECK(predict(overlapping, 8).between_s == Approx(eight.between_s - 0.050));
    overlapping.between.bytes_per_s = 1e12;
    CHECK(predict(overlapping, 8).between_s > 0); // the last bucket is never hidden
}

TEST_CASE("parameters travel behind the next forward, but the last bucket's") {
    auto following = inputs();
    following.follows = true;
    auto const back = 50e-6 + 4 * 2 * 1.5e-6 + 0.5 * 100e6 / 1e9; // of which forward takes 30 ms
    CHECK(predict(following, 8).between_s == Approx(predict(inputs(), 8).between_s - 0.030));
    following.alone.backward = 0;
    CHECK(predict(following, 8).between_s ==
          Approx(predict(inputs(), 8).between_s - back + back / 4));
}

TEST_CASE("parameters that are lent are asked for in each pass, while the bucket before computes") {
    auto lent = inputs();
    lent.lent_passes = 2;
    lent.alone.compute = 0.040;
    auto const back = 50e-6 + 4 * 2 * 1.5e-6 + 0.5 * 100e6 / 1e9;
    auto const there = predict(inputs(), 8).between_s - back;
    // A request of another host, and four answers; this host has as many to take and to give.
    auto const bucket = 2 * 50e-6 + 10 * 1.5e-6 + 0.5 * 25e6 / 1e9;
    CHECK(predict(lent, 8).between_s == Approx(there + 2 * (4 * bucket - 0.020)));
    lent.alone.compute = 1; // hides all but a bucket of each pass
    CHECK(predict(lent, 8).between_s == Approx(there + 2 * bucket));
    lent.replicas = 16; // two on each rank
    CHECK(predict(lent, 8).between_s == Approx(there + 4 * bucket));
    CHECK(predict(lent, 4).between_s == 0);
    // Each host asks all others: with more hosts, at last, messages cost more than bytes.
    lent.replicas = 0;
    lent.alone.compute = 0;
    CHECK(predict(lent, 4096).between_s - predict(lent, 2048).between_s >
          2 * 4 * 512 * 10 * 1.5e-6 - 1e-3);
}

TEST_CASE("what is rounded to 16 bits takes half of the way to the sums") {
    auto rounded = inputs();
    rounded.carried = 0.5;
    CHECK(predict(inputs(), 8).between_s - predict(rounded, 8).between_s ==
          Approx(0.5 * 0.5 * 100e6 / 1e9));
}

TEST_CASE("where each device is a host, neighbours add nothing up first") {
    auto devices = inputs();
    devices.overlaps = devices.ranks_are_hosts = true;
    devices.between.latency_s = 0;
    devices.alone.backward = 0;
    // Each of four sends to the four of the other host, there and back, its own shard of eight.
    CHECK(predict(devices, 8).between_s ==
          Approx(2 * (4 * 0.5 * 100e6 / 1e9) + 2 * 4 * 14 * 1e-6).epsilon(0.01));
    CHECK(predict(devices, 4).between_s == 0);
}

TEST_CASE("hosts that wait for the slowest are a part of the step on several") {
    auto uneven = inputs();
    uneven.alone.imbalance = 0.009;
    CHECK(predict(uneven, 4).step_s == Approx(predict(inputs(), 4).step_s));
    CHECK(predict(uneven, 8).step_s == Approx(predict(inputs(), 8).step_s + 0.007));
}

TEST_CASE("sums that were measured between hosts are predicted as they were") {
    for (int const hosts : {2, 3, 4, 7, 64}) {
        CAPTURE(hosts);
        auto given = inputs();
        given.ranks_per_host = given.measured = 1;
        given.arena_bytes = 100e6;
        given.between = NetworkModel::of_sums(hosts, 4096, 0.012, 16e6, 1.2);
        // The messages' own time is in both.
        CHECK(predict(given, hosts).between_s ==
              Approx(0.012 + (1.2 - 0.012) * 100 / 16).epsilon(1e-3));
    }
}

TEST_CASE("a fixed number of replicas is shared by the ranks") {
    auto fixed = inputs();
    fixed.replicas = 8;
    CHECK(predict(fixed, 1).parts.compute == Approx(8 * 0.080));
    CHECK(predict(fixed, 3).parts.compute > predict(fixed, 4).parts.compute); // 3, 3 and 2
    CHECK(predict(fixed, 8).speed_up > 3);
    CHECK(test::error_of([&] { predict(fixed, 16); }).code() == ExitCode::usage);
}

TEST_CASE("what one rank alone has measured is a prediction, too") {
    auto alone = inputs();
    alone.measured = 1;
    alone.together = {};
    alone.copy_per_s = 10e9;
    auto const two = predict(alone, 2);
    CHECK(two.step_s == Approx(0.080 + 0.5 * 100e6 / 10e9 + 0.020));
}

TEST_CASE("a network is a line through two messages") {
    auto const network = NetworkModel::through(1e3, 20e-6, 1e6, 1020e-6);
    CHECK(network.seconds(1e3) == Approx(20e-6));
    CHECK(network.seconds(1e6) == Approx(1020e-6));
    auto const noisy = NetworkModel::through(1e3, 20e-6, 1e6, 15e-6); // a large one came sooner
    CHECK(noisy.bytes_per_s > 0);
    CHECK(noisy.latency_s >= 0);
}
