#include "rl/advantages.hpp"

#include <vector>

#include "catch.hpp"
#include "golden_lines.hpp"

using namespace lockstep;
using namespace lockstep::rl;

TEST_CASE("advantages have the bits of stable-baselines3's") {
    auto const lines = test::golden_lines("advantages.txt");
    REQUIRE(lines.size() == 12);
    for (std::size_t at = 0; at < lines.size(); at += 6) {
        auto const head = test::numbers_of(lines[at]);
        auto const rewards = test::floats_of(lines[at + 1]);
        auto const values = test::floats_of(lines[at + 2]);
        auto const starts = test::floats_of(lines[at + 3]);
        auto const last = test::floats_of(lines[at + 4]);
        std::vector<float> advantages(rewards.size());
        estimate_advantages({static_cast<std::int64_t>(head[0]), static_cast<std::int64_t>(head[1]),
                             rewards, values, starts, last},
                            {head[2], head[3]}, advantages);
        CHECK(advantages == test::floats_of(lines[at + 5]));
    }
}

TEST_CASE("nothing is carried over the end of an episode") {
    std::vector<float> const rewards{1, 1, 5};
    std::vector<float> const values{0, 0, 0};
    std::vector<float> const starts{1, 0, 1, 1};
    std::vector<float> const last{100};
    std::vector<float> advantages(3);
    estimate_advantages({3, 1, rewards, values, starts, last}, {1, 1}, advantages);
    CHECK(advantages == std::vector<float>{2, 1, 5});
}

TEST_CASE("advantages of a step are made standard over all its replicas together") {
    // 1, 2, 3, 4, 10 on two replicas; numpy.std(ddof=1) is 3.5355339059327378.
    auto const scale = scale_of((1 + 2) + (3 + 4 + 10), (1 + 4) + (9 + 16 + 100), 5);
    CHECK(scale.mean == 4);
    CHECK(scale.deviation == Approx(3.5355339059327378 + 1e-8).epsilon(1e-15));
    CHECK(scale_of(0.5, 0.25, 1).deviation == 1e-8);
    CHECK(scale_of(0.3, 0.03, 3).deviation == Approx(1e-8).margin(1e-8)); // all alike, rounded
}
