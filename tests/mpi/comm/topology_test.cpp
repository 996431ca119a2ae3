#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/topology.hpp"

#include "catch.hpp"
#include "world.hpp"

using namespace lockstep;

TEST_CASE("every rank has a host, and its own place among the ranks of that host") {
    auto const& world = test::world();
    auto const topology = comm::Topology::discover(world);
    CHECK(topology.host_of_rank.size() == static_cast<std::size_t>(world.size()));
    CHECK(topology.host_of_rank[static_cast<std::size_t>(world.rank())] == comm::host_name());
    // These tests run on one host, so that the local ranks are the ranks.
    CHECK(topology.hosts == std::vector<std::string>{comm::host_name()});
    CHECK(topology.local_size == world.size());
    CHECK(topology.local_rank == world.rank());
}

TEST_CASE("ranks are dealt round the devices of their host; without any they use the CPU") {
    comm::Topology topology;
    topology.local_size = 5;
    std::vector<int> devices;
    for (topology.local_rank = 0; topology.local_rank < 5; ++topology.local_rank) {
        devices.push_back(comm::device_of(topology, 2));
        CHECK(comm::device_of(topology, 0) == -1);
    }
    CHECK(devices == std::vector<int>{0, 1, 0, 1, 0});
}
