#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// "Did you mean X?", with the candidate that `name` probably was to be; `otherwise` where none is
/// near.
std::string suggestion(std::string_view name, std::vector<std::string> const& candidates,
                       std::string otherwise);

} // namespace lockstep
