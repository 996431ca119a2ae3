// Whose computation is compared with whose, check by check.

#include "step/check_rotation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"

using namespace lockstep;
using train::CheckRotation;

namespace {

struct Ranks {
    int replicas;
    std::vector<std::string> hosts; ///< by rank
};

int owner_of(std::vector<comm::TreeNode> const& nodes, int replica) {
    int rank = 0;
    while (nodes[static_cast<std::size_t>(rank)].first +
               nodes[static_cast<std::size_t>(rank)].count <=
           replica) {
        ++rank;
    }
    return rank;
}

} // namespace

TEST_CASE("in a period every replica is compared with every other host") {
    for (Ranks const& each : {Ranks{2, {"a", "b"}},
                              {3, {"a", "b", "c"}},
                              {8, {"a", "a", "b", "b", "c", "c", "d", "d"}},
                              {7, {"a", "b", "b", "c"}},
                              {5, {"a", "b", "a", "b"}}}) {
        auto const nodes =
            comm::subtrees_of_ranks(each.replicas, static_cast<int>(each.hosts.size()));
        CheckRotation const rotation(nodes, each.hosts);
        std::set<std::string> const names(each.hosts.begin(), each.hosts.end());
        auto const host = [&](int rank) { return each.hosts[static_cast<std::size_t>(rank)]; };
        std::map<int, std::set<std::string>> compared;
        std::set<int> seconds;
        auto const all = rotation.period() * static_cast<std::int64_t>(each.hosts.size());
        for (std::int64_t check = 0; check < all; ++check) {
            CAPTURE(each.replicas, check);
            auto const found = rotation.at(check);
            CHECK(found.owner == owner_of(nodes, found.replica));
            CHECK(host(found.owner) != host(found.second));
            CHECK((found.third >= 0) == (names.size() > 2));
            if (found.third >= 0) {
                CHECK(std::set{host(found.owner), host(found.second), host(found.third)}.size() ==
                      3);
            }
            seconds.insert(found.second);
            if (check < rotation.period()) {
                CHECK(compared[found.replica].insert(host(found.second)).second);
            }
        }
        CHECK(std::ssize(compared) == each.replicas);
        CHECK(std::ranges::all_of(
            compared, [&](auto const& with) { return with.second.size() == names.size() - 1; }));
        CHECK(seconds.size() == each.hosts.size()); // each rank of a host repeats, too
    }
}

TEST_CASE(
    "of hosts with as many replicas each, none waits longer for a check than there are hosts") {
    std::vector<std::string> const hosts{"a", "a", "b", "b", "c", "c", "d", "d"};
    CheckRotation const rotation(comm::subtrees_of_ranks(16, 8), hosts);
    constexpr std::int64_t count = 4;
    auto const periods = 10 * rotation.period();
    for (std::string const broken : {"a", "b", "c", "d"}) {
        double waited = 0;
        for (std::int64_t begin = 0; begin < periods;
             ++begin) { // its fault begins before this check
            auto check = begin;
            for (;; ++check) {
                auto const found = rotation.at(check);
                if (hosts[static_cast<std::size_t>(found.owner)] == broken ||
                    hosts[static_cast<std::size_t>(found.second)] == broken) {
                    break;
                }
            }
            CHECK(check + 1 - begin <= count);
            waited += static_cast<double>(check + 1 - begin);
        }
        CAPTURE(broken);
        // docs/clusters.md: (H + 1) / 3 checks, but for where rounds meet
        CHECK(std::abs(waited / static_cast<double>(periods) - (count + 1) / 3.0) < 0.1);
    }
}

TEST_CASE("on one host its ranks are compared, and nobody decides") {
    CheckRotation const rotation(comm::subtrees_of_ranks(4, 3), {"a", "a", "a"});
    std::set<std::pair<int, int>> pairs;
    for (std::int64_t check = 0; check < rotation.period(); ++check) {
        auto const found = rotation.at(check);
        CHECK(found.third == -1);
        pairs.insert({found.owner, found.second});
        CHECK(found.owner != found.second);
    }
    CHECK(pairs.size() == 6);
}
