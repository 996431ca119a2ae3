#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>
#include <string>

namespace lockstep {

/// The JSON value that a text is, which may come from anywhere: what works on the value may
/// recurse, so that deep nesting would end the process. `refuse` is called with the reason where
/// the text is not JSON, or is nested more than `max_depth` levels deep ("is not JSON"); it must
/// throw.
nlohmann::json parsed_json(std::string const& text, int max_depth,
                           std::function<void(std::string const& why)> const& refuse);

} // namespace lockstep
