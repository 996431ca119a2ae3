#pragma once

#include <string>
#include <vector>

#include "completion.hpp"

namespace lockstep::app {

/// The names of what `lockstep models` or `lockstep tasks` lists. It loads LibTorch, which takes
/// half a second.
std::vector<Candidate> kinds_of(std::string const& what);

/// The keys of models or tasks; of the one that the command line names, if it does.
std::vector<Candidate> own_keys(std::string const& what, std::string const& named);

} // namespace lockstep::app
