#pragma once

#include "lockstep/events/events.hpp"

#include <nlohmann/json_fwd.hpp>

namespace lockstep::monitor {

/// The resources that ranks have used, as in the records and in history.jsonl; null where it was
/// not measured.
nlohmann::ordered_json resources_json(train::Resources const& resources);

/// Adds up two such objects, of attempts or of epochs that follow each other; each may be null.
nlohmann::ordered_json added_resources(nlohmann::ordered_json const& before,
                                       nlohmann::ordered_json const& after);

} // namespace lockstep::monitor
