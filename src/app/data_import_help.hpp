#pragma once

#include <string>
#include <vector>

namespace lockstep::app {

/// The kinds of sources that can be imported.
std::vector<std::string> import_kinds();

/// What `lockstep data import --help` tells; of one kind, or of all where `kind` is none.
std::string import_help(std::string const& kind);

} // namespace lockstep::app
