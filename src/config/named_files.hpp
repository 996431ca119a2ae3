#pragma once

#include "config/named.hpp"

#include <map>
#include <string>

namespace lockstep::config {

/// The keys whose values name files or what is in them, those of models, too.
std::map<std::string, Named> const& keys_of_names();

/// What the value of a key names.
Named names_of(std::string const& key);

/// Whether it names files whose contents decide what is trained, wherever they lie.
bool names_contents(std::string const& key);

} // namespace lockstep::config
