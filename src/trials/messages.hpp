#pragma once

#include "trials/trial.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace lockstep::trials {

/// What a rank without work tells rank 0 of a search.
struct RankReport {
    std::optional<TrialEnd> end{}; ///< of its last job, where it was its group's first rank
    std::string interrupted{};     ///< the signal that has reached the rank; empty: none
    bool lost = false;             ///< the rank has a failure of its own, and the job ends
};

/// An order to a rank.
struct RankOrder {
    enum class What { train, wait, leave };
    What what = What::wait;
    int number = 0;           ///< of the order, the same for all its ranks
    std::vector<int> ranks{}; ///< that train together
    TrialJob trial{};
    std::set<StateOf> needed{}; ///< the only states that are kept in memory
};

/// Conversion to the text of a message, and back.
std::string text_of(RankReport const& report);
RankReport report_of(std::string const& text);
std::string text_of(RankOrder const& order);
RankOrder order_of(std::string const& text);

} // namespace lockstep::trials
