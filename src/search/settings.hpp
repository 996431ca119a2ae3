#pragma once

#include "lockstep/config/deck_source.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::search {

/// What a search looks for: "accuracy max".
struct Goal {
    std::string metric; ///< of the validation, loss, or parameters, step_ms
    bool more_is_better = false;
};

/// [search] of a SPACE file.
struct Settings {
    std::string strategy = "random";
    std::int64_t trials = 20;
    std::int64_t seed = 0;
    std::vector<Goal> goals{{"loss", false}};
    std::string constraints;
    std::string constraints_origin;
    std::int64_t grid_points = 3;     ///< of a dimension without levels
    std::int64_t reduction = 3;       ///< halving, hyperband, asha: one in this many continues
    double minimum_share = 1.0 / 9;   ///< of a run's length: the first rung
    std::int64_t batch = 4;           ///< tpe: trials that are chosen without each other's results
    std::int64_t population = 16;     ///< nsga2, pbt
    std::int64_t intervals = 5;       ///< pbt
    std::int64_t ranks_per_trial = 1; ///< at least
    std::int64_t retries = 2;         ///< of a trial that ran out of memory or disk
};

/// Reads the keys "search.KEY" of `source`.
///
/// Throws  Error 64 naming file, line and key, what was expected and the nearest valid name
Settings settings_of(config::DeckSource const& source);

} // namespace lockstep::search
