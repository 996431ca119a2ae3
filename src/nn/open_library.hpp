#pragma once

#include <string>

namespace lockstep::nn {

/// Opens the shared library at this path, for which the loader's own path is not searched. It stays
/// loaded. Exported programs may name the operators that it registers. `what` it is, and how to
/// `correct` the deck, are for messages.
///
/// A library may hold the text "lockstep_torch_version=" with the version of LibTorch that it was
/// built for. It is looked for in the file: loading the library already calls LibTorch.
///
/// Throws  Error 66 for a missing file; 69 for one that cannot be loaded, or names another LibTorch
void* open_library(std::string const& what, std::string const& file, std::string const& correct);

} // namespace lockstep::nn
