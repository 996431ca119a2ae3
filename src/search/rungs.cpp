#include "rungs.hpp"

#include <algorithm>

namespace lockstep::search {

std::vector<double> rungs_of(Settings const& settings, double first) {
    std::vector<double> rungs{1.0};
    auto const reduction = static_cast<double>(settings.reduction);
    while (rungs.back() / reduction >= first * (1 - 1e-9)) {
        rungs.push_back(rungs.back() / reduction);
    }
    std::ranges::reverse(rungs);
    return rungs;
}

} // namespace lockstep::search
