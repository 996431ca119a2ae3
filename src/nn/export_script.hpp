#pragma once

#include "lockstep/nn/model.hpp"

#include <filesystem>
#include <string>

namespace lockstep::nn {

/// Writes a model as a TorchScript file that Python and C++ load without this program: a script as
/// it is, any other model as the trace of its forward in evaluation mode, with parameters and
/// buffers under their names. The trace is tried on two batch sizes before it is kept. `facts`, of
/// the samples that it was trained on, go into the file as they are.
///
/// Throws  Error 64 when forward does different things for different batches, or takes more than
///         one input of real values, so that no trace can stand for it; 73 when the file cannot be
///         created
void export_script(Model& model, Interface const& interface, std::string const& facts,
                   std::filesystem::path const& path);

/// What export_script was given as `facts`; empty for other files.
///
/// Throws  Error 66 or 74 for an unreadable file
std::string facts_in_script(std::filesystem::path const& path);

} // namespace lockstep::nn
