#include "search/ranks_of_trials.hpp"

#include <vector>

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("many trials get a rank each, the last ones share what is left") {
    auto const given = [](int trials, int ranks, int min = 1, int max = 100) {
        return search::ranks_of_next_trial({.trials = trials, .min_ranks = min, .max_ranks = max},
                                           ranks);
    };
    CHECK(given(1, 1) == 1);
    CHECK(given(100'000, 1024) == 1);
    CHECK(given(9, 4) == 1);
    CHECK(given(4, 4) == 1);
    CHECK(given(3, 4) == 2); // two and two, then one on all four, or four each: never an idle rank
    CHECK(given(2, 4) == 2);
    CHECK(given(1, 4) == 4);
    CHECK(given(1, 4, 1, 3) == 3); // no more than it has replicas
    CHECK(given(1, 4, 1, 1) == 1);
    CHECK(given(9, 4, 2) == 2);
    CHECK(given(2, 8, 3, 8) == 8); // three each would leave two without work
    CHECK(given(1, 2, 8, 8) == 2); // fewer ranks than asked for
}
