#include "comm/launch_facts.hpp"

#include <numeric>

#include "catch.hpp"

using namespace lockstep;
using comm::LaunchFacts;

namespace {

/// `ranks` of one host with so many cores, each bound to one of its own.
std::vector<LaunchFacts> launched(int ranks, int cores) {
    std::vector<LaunchFacts> facts;
    for (int rank = 0; rank < ranks; ++rank) {
        LaunchFacts own;
        own.host = "node1";
        own.cores = {rank};
        own.host_cores = cores;
        own.granted_cores = cores;
        own.processor = "A";
        own.program = "p";
        own.libraries = "l";
        own.deck = "d";
        own.data = "x";
        facts.push_back(own);
    }
    return facts;
}

Finding const* found(std::vector<Finding> const& findings, std::string const& topic) {
    for (auto const& finding : findings) {
        if (finding.topic == topic && finding.colour != Colour::green) {
            return &finding;
        }
    }
    return nullptr;
}

} // namespace

TEST_CASE("a launch as it should be is green") {
    CHECK(worst(judge_launch(launched(4, 4))) == Colour::green);
    auto free = launched(2, 4);
    for (auto& rank : free) {
        rank.cores = {0, 1, 2, 3}; // not bound
    }
    CHECK(worst(judge_launch(free)) == Colour::green);
    CHECK(worst(judge_launch(launched(1, 1))) == Colour::green);
}

TEST_CASE("ranks that are bound to one core are found") {
    auto facts = launched(4, 8);
    for (auto& rank : facts) {
        rank.cores = {0};
    }
    auto const findings = judge_launch(facts);
    auto const* const finding = found(findings, "cores");
    REQUIRE(finding != nullptr);
    CHECK(finding->colour == Colour::red);
    CHECK(finding->what == "ranks 0, 1, 2, 3 on node1 are bound to 1 of its 8 cores");
    CHECK_FALSE(finding->remedy.empty());

    auto two = launched(4, 8);
    two[3].cores = {2};
    two[1].cores = {1, 5, 6};
    auto const of_two = judge_launch(two);
    CHECK(found(of_two, "cores")->what == "ranks 2, 3 on node1 are bound to core 2");
}

TEST_CASE("more threads than cores cost speed") {
    auto facts = launched(4, 2);
    for (auto& rank : facts) {
        rank.cores = {0, 1};
    }
    CHECK(found(judge_launch(facts), "cores")->colour == Colour::yellow);
    auto threads = launched(2, 2);
    threads[0].threads = 4;
    CHECK(found(judge_launch(threads), "cores")->colour == Colour::yellow);
    auto limited = launched(2, 8);
    for (auto& rank : limited) {
        rank.granted_cores = 1;
    }
    CHECK(found(judge_launch(limited), "cores")->colour == Colour::yellow);
}

TEST_CASE("two ranks on one GPU are found, on two hosts not") {
    auto facts = launched(3, 4);
    facts[0].gpu = facts[2].gpu = "GPU-a";
    facts[1].gpu = "GPU-b";
    auto const findings = judge_launch(facts);
    auto const* const finding = found(findings, "devices");
    REQUIRE(finding != nullptr);
    CHECK(finding->colour == Colour::red);
    CHECK(finding->what == "ranks 0, 2 share one GPU, node1 GPU-a");
    facts[2].host = "node2";
    CHECK(found(judge_launch(facts), "devices") == nullptr);
}

TEST_CASE("unlike programs, decks and data are found, with the ranks that differ") {
    for (auto const& [fact, topic] :
         {std::pair(&LaunchFacts::program, "program"),
          std::pair(&LaunchFacts::libraries, "libraries"), std::pair(&LaunchFacts::deck, "deck"),
          std::pair(&LaunchFacts::data, "data")}) {
        auto facts = launched(3, 4);
        facts[2].host = "node2";
        facts[2].*fact = "other";
        auto const findings = judge_launch(facts);
        auto const* const finding = found(findings, topic);
        REQUIRE(finding != nullptr);
        CHECK(finding->colour == Colour::red);
        CHECK(finding->what.find("rank 2 on node2") != std::string::npos);
    }
    auto missing = launched(2, 2);
    missing[1].data = "missing";
    auto const findings = judge_launch(missing);
    CHECK(found(findings, "data")->what == "rank 1 of 2 cannot read the data");
    auto no_deck = launched(2, 2);
    for (auto& rank : no_deck) {
        rank.deck = rank.data = "";
    }
    CHECK(worst(judge_launch(no_deck)) == Colour::green);
}

TEST_CASE("unlike processors cost exactness") {
    auto facts = launched(2, 2);
    facts[1].processor = "B";
    CHECK(found(judge_launch(facts), "processor")->colour == Colour::yellow);
}
