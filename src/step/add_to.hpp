#pragma once

#include <algorithm>
#include <functional>
#include <vector>

namespace lockstep::train {

/// Adds entry by entry; sums that are empty begin at zero.
template <class Number>
void add_to(std::vector<Number>& sums, std::vector<Number> const& more) {
    sums.resize(more.size(), 0);
    std::transform(more.begin(), more.end(), sums.begin(), sums.begin(), std::plus<>());
}

} // namespace lockstep::train
