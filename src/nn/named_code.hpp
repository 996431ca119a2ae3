#pragma once

#include "lockstep/config/deck.hpp"

#include <map>
#include <string>
#include <vector>

namespace lockstep::nn {

/// The keys of a deck that name code to load, plug-ins and libraries of operators, with their
/// values. Code runs whatever its authors wrote: only the user chooses it, never a file.
std::map<std::string, std::string> named_code(config::Deck const& deck);

/// The libraries that these keys name, by key. What is linked into the program (plugin:self) is in
/// none.
///
/// Throws  Error 64 for a plug-in's name of another form or an empty name of a library
std::map<std::string, std::vector<std::string>> code_files(config::Deck const& deck);

/// Hashes of the contents of these libraries, by key.
///
/// Throws  as code_files; Error 66 for a missing file
std::map<std::string, std::string> code_hashes(config::Deck const& deck);

} // namespace lockstep::nn
