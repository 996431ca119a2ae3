#pragma once

#include "lockstep/nn/model.hpp"

#include <filesystem>

namespace lockstep::nn {

/// Writes a model as a TorchScript file that Python and C++ load without this program: a script as
/// it is, any other model as the trace of its forward in evaluation mode, with parameters and
/// buffers under their names. The trace is tried on two batch sizes before it is kept.
///
/// Throws  Error 64 when forward does different things for different batches, or takes more than
///         one input of real values, so that no trace can stand for it; 73 when the file cannot be
///         created
void export_script(Model& model, Interface const& interface, std::filesystem::path const& path);

} // namespace lockstep::nn
