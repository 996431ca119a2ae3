#include "train/stragglers.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "catch.hpp"

using lockstep::train::Stragglers;

namespace {

/// A report over steps of a tenth of a second, in each of which ranks have waited so long.
Stragglers::Report report_of(Stragglers& stragglers, int count,
                             std::vector<double> const& waited_s) {
    for (int step = 0; step < count; ++step) {
        stragglers.add(waited_s.front(), 0.1);
    }
    auto const min = std::ranges::min_element(waited_s);
    auto const all = std::accumulate(waited_s.begin(), waited_s.end(), 0.0);
    return stragglers.report({.ranks = static_cast<int>(waited_s.size()),
                              .sum_s = count * all,
                              .min_s = count * *min,
                              .min_rank = static_cast<int>(min - waited_s.begin())});
}

Stragglers::Report ten_steps(Stragglers& stragglers, std::vector<double> const& waited_s) {
    return report_of(stragglers, 10, waited_s);
}

} // namespace

TEST_CASE("the rank that waits least is the one that comes last") {
    Stragglers stragglers;
    auto const report = ten_steps(stragglers, {0.04, 0.01, 0.03});
    CHECK(report.rank == 1);
    CHECK(report.late_s == Approx(0.025));
}

TEST_CASE("what is a tenth of the step at most is not worth a word") {
    Stragglers stragglers;
    CHECK(ten_steps(stragglers, {0.011, 0.002}).rank == -1);
    CHECK(ten_steps(stragglers, {0.013, 0.002}).rank == 1);
}

TEST_CASE("a rank alone is no straggler, nor is any before the first step") {
    Stragglers stragglers;
    CHECK(report_of(stragglers, 0, {0, 1}).rank == -1);
    CHECK(ten_steps(stragglers, {0}).rank == -1);
}

TEST_CASE("one that stays the last is told once, one that changes is not") {
    Stragglers stragglers;
    std::vector<double> const first{0, 0.05};
    std::vector<double> const second{0.05, 0};
    CHECK_FALSE(ten_steps(stragglers, first).stays);
    CHECK_FALSE(ten_steps(stragglers, first).stays);
    CHECK_FALSE(ten_steps(stragglers, second).stays);
    CHECK_FALSE(ten_steps(stragglers, first).stays);
    CHECK_FALSE(ten_steps(stragglers, first).stays);
    CHECK(ten_steps(stragglers, first).stays);
    CHECK_FALSE(ten_steps(stragglers, first).stays);
}

TEST_CASE("a slow moment of another rank does not hide the one that stays the last") {
    Stragglers stragglers;
    int told = 0;
    for (int step = 1; step <= 40; ++step) {
        bool const hiccup = step % 7 == 0;
        told += report_of(stragglers, 1,
                          hiccup ? std::vector<double>{0.05, 0} : std::vector<double>{0, 0.05})
                        .stays
                    ? 1
                    : 0;
    }
    CHECK(told == 1);
}

TEST_CASE("two ranks that take turns are none that stays") {
    Stragglers stragglers;
    for (int step = 1; step <= 60; ++step) {
        bool const second = step % 3 == 0;
        CHECK_FALSE(report_of(stragglers, 1,
                              second ? std::vector<double>{0.05, 0} : std::vector<double>{0, 0.05})
                        .stays);
    }
}

TEST_CASE("a few steps are not enough, however often they are reported") {
    Stragglers stragglers;
    int told = 0;
    for (int step = 1; step <= 19; ++step) {
        told += report_of(stragglers, 1, std::vector<double>{0, 0.05}).stays ? 1 : 0;
    }
    CHECK(told == 0);
    CHECK(report_of(stragglers, 1, std::vector<double>{0, 0.05}).stays);
}

TEST_CASE("a report says how many times as long steps take") {
    Stragglers stragglers;
    CHECK(ten_steps(stragglers, {0.05, 0}).factor == Approx(2));
    CHECK(ten_steps(stragglers, {0.08, 0.08, 0}).factor == Approx(5));
    CHECK(ten_steps(stragglers, {0, 0}).factor == 1);
    CHECK(ten_steps(stragglers, {0.2, 0}).factor == Approx(1000)); // clocks of two ranks
}
