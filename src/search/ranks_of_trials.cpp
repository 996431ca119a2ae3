#include "search/ranks_of_trials.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::search {

namespace {

constexpr double effort_of_doubling = 0.1;

/// Numbers of ranks that are tried: powers of two, and the largest.
std::vector<int> widths_of(Waiting const& waiting, int ranks) {
    auto const max = std::clamp(waiting.max_ranks, 1, std::max(ranks, 1));
    auto const min = std::clamp(waiting.min_ranks, 1, max);
    std::vector<int> widths;
    for (auto width = min; width < max; width *= 2) {
        widths.push_back(width);
    }
    widths.push_back(max);
    return widths;
}

} // namespace

double effort_of(int ranks) {
    return 1 + effort_of_doubling * std::log2(std::max(ranks, 1));
}

int ranks_of_next_trial(Waiting const& waiting, int ranks) {
    auto const widths = widths_of(waiting, ranks);
    // Time until the last `n` trials are done, in rank-seconds of a trial; long rows begin alike.
    auto const trials = std::min(waiting.trials, 2 * std::max(ranks, 1));
    std::vector<double> time{0};
    auto chosen = widths.front();
    for (int n = 1; n <= trials; ++n) {
        auto min = HUGE_VAL;
        for (auto const width : widths) {
            auto const concurrent = std::max(ranks / width, 1);
            auto const rest = time[static_cast<std::size_t>(std::max(n - concurrent, 0))];
            if (auto const all = effort_of(width) / width + rest; all < min - 1e-9) {
                min = all;
                chosen = width;
            }
        }
        time.push_back(min);
    }
    return chosen;
}

} // namespace lockstep::search
