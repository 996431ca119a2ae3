#include "monitor/stall_judge.hpp"

#include <functional>

#include "catch.hpp"

using namespace lockstep;
using comm::Wait;
using monitor::RankView;
using monitor::StallJudge;
using monitor::Verdict;

namespace {

/// Three ranks that are looked at every quarter of a second.
struct Host {
    StallJudge judge{10};
    std::vector<RankView> ranks{3};
    double now = 100;
    std::optional<double> found_at; ///< seconds after the start of the last `watch`

    Host() {
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            ranks[i].rank = static_cast<int>(i);
            ranks[i].state = 'S';
        }
    }

    template <class Change>
    std::optional<Verdict> watch(double seconds, Change const& change,
                                 monitor::Elsewhere elsewhere = {}) {
        found_at.reset();
        for (double passed = 0; passed < seconds; passed += 0.25) {
            for (auto& rank : ranks) {
                ++rank.beats;
                ++rank.progress;
            }
            change();
            now += 0.25;
            if (auto const verdict = judge.judge(ranks, now, elsewhere)) {
                found_at = passed;
                return verdict;
            }
        }
        return std::nullopt;
    }
    void still(std::size_t rank) { --ranks[rank].progress; }
    void frozen(std::size_t rank) {
        still(rank);
        --ranks[rank].beats;
    }
};

} // namespace

TEST_CASE("ranks that get on are left alone") {
    Host host;
    CHECK_FALSE(host.watch(100, [] {}));
}

TEST_CASE("a rank that stands still is named, not those that wait for it") {
    Host host;
    host.ranks[0].wait = host.ranks[2].wait = Wait::exchange;
    auto const verdict = host.watch(100, [&] {
        host.still(0);
        host.still(1);
        host.still(2);
    });
    REQUIRE(verdict);
    CHECK(verdict->at == 1);
    CHECK(verdict->text.why == "it hangs; ranks 0, 2 wait in the exchange of gradients");
    CHECK(*host.found_at > 10 - 0.5);
    CHECK(*host.found_at < 10 + 1);
}

TEST_CASE("a rank that works for long while the others wait is not named") {
    Host host;
    host.ranks[0].wait = host.ranks[2].wait = Wait::all_reduce;
    CHECK_FALSE(host.watch(100, [&] {
        host.still(0);
        host.still(2);
    }));
}

TEST_CASE("of two that stand still, the one that did so first is named") {
    Host host;
    CHECK_FALSE(host.watch(5, [&] { host.still(2); }));
    auto const verdict = host.watch(100, [&] {
        host.still(1);
        host.still(2);
    });
    REQUIRE(verdict);
    CHECK(verdict->at == 2);
}

TEST_CASE("a stopped process is named even where it waited itself") {
    Host host;
    host.ranks[0].wait = host.ranks[1].wait = host.ranks[2].wait = Wait::barrier;
    host.ranks[0].state = 'T';
    auto const verdict = host.watch(100, [&] {
        host.frozen(0);
        host.still(1);
        host.still(2);
    });
    REQUIRE(verdict);
    CHECK(verdict->at == 0);
    CHECK(verdict->text.why.find("stopped (SIGSTOP)") != std::string::npos);
}

TEST_CASE("where all wait for each other, the one with the fewest calls is named") {
    Host host;
    host.ranks[0].wait = Wait::all_reduce;
    host.ranks[1].wait = Wait::barrier;
    host.ranks[2].wait = Wait::all_reduce;
    host.ranks[0].collectives = host.ranks[2].collectives = 8;
    host.ranks[1].collectives = 7;
    auto const all_still = [&] {
        host.still(0);
        host.still(1);
        host.still(2);
    };
    SECTION("while another host gets on, nobody is to blame") {
        CHECK_FALSE(host.watch(100, all_still, {.still_s = 0}));
    }
    SECTION("on one host") {
        auto const verdict = host.watch(100, all_still);
        REQUIRE(verdict);
        CHECK(verdict->at == 1);
        CHECK(verdict->text.why.find("a barrier (call 7)") != std::string::npos);
    }
    SECTION("and of equals, the one that waits for its disk") {
        for (auto& rank : host.ranks) {
            rank.wait = Wait::file;
            rank.collectives = 8;
        }
        host.ranks[2].state = 'D';
        auto const verdict = host.watch(100, all_still);
        REQUIRE(verdict);
        CHECK(verdict->at == 2);
    }
}

TEST_CASE("what all hosts see at the same moment is told by one after the other") {
    Host host;
    double patience_s = 10;
    monitor::Elsewhere elsewhere{.turn_s = 4};
    SECTION("a rank of each stands still") {}
    SECTION("all wait for each other") {
        host.ranks[0].wait = host.ranks[1].wait = host.ranks[2].wait = Wait::all_reduce;
    }
    SECTION("hosts cannot be heard") {
        host.ranks[0].wait = host.ranks[1].wait = host.ranks[2].wait = Wait::all_reduce;
        patience_s = 20;
        elsewhere.unheard = "node7";
    }
    auto const all_still = [&] {
        host.still(0);
        host.still(1);
        host.still(2);
    };
    CHECK_FALSE(host.watch(patience_s + 3, all_still, elsewhere));
    CHECK(host.watch(2, all_still, elsewhere));
}

TEST_CASE("a process that is gone is named at once") {
    Host host;
    auto const verdict = host.watch(100, [&] { host.ranks[2].gone = true; });
    REQUIRE(verdict);
    CHECK(verdict->at == 2);
    CHECK(*host.found_at == 0);
}

TEST_CASE("a process that the kernel still ends is gone, too, not short of processor time") {
    RankView rank;
    observe(rank, ProcessState{'R', 1, false});
    CHECK(rank.state == 'R');
    CHECK_FALSE(rank.gone);
    SECTION("it ends") {
        observe(rank, std::nullopt);
    }
    SECTION("it was killed, and has not run since") {
        observe(rank, ProcessState{'R', 1, true});
    }
    CHECK(rank.gone);
    observe(rank, ProcessState{'S', 2, false}); // another process has its number by now
    CHECK(rank.gone);
}

TEST_CASE("a rank that has ended well is not lost, nor are those that end with it") {
    Host host;
    host.ranks[0].left = host.ranks[0].gone = host.ranks[1].gone = true;
    CHECK_FALSE(host.watch(100, [&] { host.frozen(0); }));
}

TEST_CASE("while another host is silent, ranks that stand still may be waiting for it") {
    Host host;
    auto const silent = [&](std::function<void(std::size_t)> const& change) {
        return host.watch(30, [&] { change(1); }, {.in_doubt = true});
    };
    CHECK_FALSE(silent([&](auto rank) { host.still(rank); }));
    for (auto& rank : host.ranks) {
        rank.wait = Wait::file;
    }
    auto const all_still = [&] {
        for (std::size_t rank = 0; rank < host.ranks.size(); ++rank) {
            host.still(rank);
        }
    };
    CHECK_FALSE(host.watch(30, all_still, {.in_doubt = true}));
    CHECK(host.watch(1, all_still)); // heard again: it was not that host
    CHECK(silent([&](auto rank) { host.frozen(rank); })->at == 1); // a fact of this host
}

TEST_CASE("while another host has a rank that is stuck, ranks that wait are not blamed") {
    Host host;
    for (auto& rank : host.ranks) {
        rank.wait = Wait::file;
    }
    auto const all_still = [&] {
        for (std::size_t rank = 0; rank < host.ranks.size(); ++rank) {
            host.still(rank);
        }
    };
    CHECK_FALSE(host.watch(30, all_still, {.stuck = true}));
    CHECK_FALSE(host.judge.has_stuck()); // it does not say so of itself
    host.ranks[1].wait = Wait::nothing;
    CHECK(host.watch(30, all_still, {.stuck = true})->at == 1);
    CHECK(host.judge.has_stuck());
}

TEST_CASE("ranks that all wait for MPI to end are not blamed, but one that is stopped is") {
    Host host;
    for (auto& rank : host.ranks) {
        rank.wait = Wait::finalize;
    }
    auto const all_still = [&] {
        for (std::size_t rank = 0; rank < host.ranks.size(); ++rank) {
            host.still(rank);
        }
    };
    CHECK_FALSE(host.watch(100, all_still));
    auto const verdict = host.watch(100, [&] {
        all_still();
        --host.ranks[1].beats;
    });
    REQUIRE(verdict);
    CHECK(verdict->at == 1);
}
