#pragma once

#include "lockstep/config/deck.hpp"

#include <map>
#include <string>
#include <vector>

namespace lockstep::nn {

/// The keys of a deck that name native code to load, with their values: plug-ins, libraries of
/// operators, and the compiled step of an exported program with the file that holds it. Code runs
/// whatever its authors wrote: only the user chooses it, never a file.
std::map<std::string, std::string> named_code(config::Deck const& deck);

/// The keys of a deck that name TorchScript programs, which can do what LibTorch's operators can,
/// without those of forget_operators_with_reach.
std::map<std::string, std::string> named_scripts(config::Deck const& deck);

/// The model without the compiled step of its file, which only training runs.
config::Model without_compiled_step(config::Model model);

/// The plug-ins and libraries that these keys name, by key. What is linked into the program
/// (plugin:self) is in none.
///
/// Throws  Error 64 for a plug-in's name of another form or an empty name of a library
std::map<std::string, std::vector<std::string>> code_files(config::Deck const& deck);

/// Hashes of the contents of these libraries, by key.
///
/// Throws  as code_files; Error 66 for a missing file
std::map<std::string, std::string> code_hashes(config::Deck const& deck);

} // namespace lockstep::nn
