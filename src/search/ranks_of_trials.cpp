#include "search/ranks_of_trials.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep::search {

namespace {

constexpr double effort_of_doubling = 0.1;

/// Numbers of ranks that are tried: powers of two, and the largest.
std::vector<int> widths_of(Waiting const& waiting, int ranks) {
    auto const most = std::clamp(waiting.most, 1, std::max(ranks, 1));
    auto const least = std::clamp(waiting.least, 1, most);
    std::vector<int> widths;
    for (auto width = least; width < most; width *= 2) {
        widths.push_back(width);
    }
    widths.push_back(most);
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
        auto least = HUGE_VAL;
        for (auto const width : widths) {
            auto const concurrent = std::max(ranks / width, 1);
            auto const rest = time[static_cast<std::size_t>(std::max(n - concurrent, 0))];
            if (auto const all = effort_of(width) / width + rest; all < least - 1e-9) {
                least = all;
                chosen = width;
            }
        }
        time.push_back(least);
    }
    return chosen;
}

} // namespace lockstep::search
