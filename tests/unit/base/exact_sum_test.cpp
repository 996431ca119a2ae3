#include "base/exact_sum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

using namespace lockstep;

namespace {

using Sum = std::array<double, exact_sum::values>;

double sum_of(std::vector<double> const& terms) {
    Sum sum{};
    for (auto const term : terms) {
        exact_sum::add(term, sum);
    }
    return exact_sum::total(sum);
}

} // namespace

TEST_CASE("one number comes out as it went in") {
    for (double const number : {0.0, 1.0, -1.0, 0.1, -2.75e30, 3.4e38, -1e-30, 128.0, 1.0 / 3}) {
        CHECK(sum_of({number}) == number);
    }
    CHECK(sum_of({std::ldexp(1.0, -170)}) == 0); // below the lowest limb
}

TEST_CASE("the order of terms does not matter, nor who adds which") {
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    for (int round = 0; round < 200; ++round) {
        std::vector<double> terms;
        for (int i = 0; i < 100; ++i) {
            terms.push_back(normal(random) * std::exp(8 * normal(random)));
        }
        auto const expected = sum_of(terms);
        std::ranges::shuffle(terms, random);
        Sum first{};
        Sum second{};
        for (std::size_t i = 0; i < terms.size(); ++i) {
            exact_sum::add(terms[i], i % 3 == 0 ? first : second);
        }
        std::ranges::transform(first, second, first.begin(), std::plus<>());
        CHECK(exact_sum::total(first) == expected);
        long double near = 0;
        for (auto const term : terms) {
            near += term;
        }
        CHECK(expected == Approx(static_cast<double>(near)));
    }
}

TEST_CASE("what cancels leaves the rest, whatever its sign") {
    CHECK(sum_of({1e30, 1.0, -1e30}) == 1);
    CHECK(sum_of({1e30, -1.0, -1e30}) == -1);
    CHECK(sum_of({0.5, -0.5}) == 0);
    CHECK(sum_of({-0.1, -0.2}) == Approx(-0.3));
    CHECK(sum_of(std::vector<double>(100'000, 0.1)) == Approx(10'000).epsilon(1e-15));
    CHECK(sum_of(std::vector<double>(100'000, 3e38)) == Approx(3e43).epsilon(1e-15));
}

TEST_CASE("a sum of what is not finite is not a number") {
    for (double const bad :
         {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN(), 1e300}) {
        CHECK(std::isnan(sum_of({1, bad, 2})));
    }
}
