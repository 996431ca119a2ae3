#pragma once

#include "search/study.hpp"

namespace lockstep::search {

/// The result of a job for a journal or a message. Metrics that are not finite are null.
nlohmann::json json_of(Outcome const& outcome);

/// Throws  nlohmann::json::exception for what `json_of` does not make
Outcome outcome_of(nlohmann::json const& json);

} // namespace lockstep::search
