#pragma once

#include <string>

namespace lockstep::nn {

/// Opens the shared library at this path, for which the loader's own path is not searched. It stays
/// loaded. Exported programs may name the operators that it registers. `what` it is, and how to
/// `correct` the deck, are for messages.
///
/// Throws  Error 66 for a missing file; 69 for one that cannot be loaded
void* open_library(std::string const& what, std::string const& file, std::string const& correct);

} // namespace lockstep::nn
