#pragma once

#include "lockstep/nn/model.hpp"

#include <filesystem>

namespace lockstep::train {

/// Looks through weights that were loaded from the file `path`. Buffers may hold infinity, as masks
/// of attention do. Waits for the model's device.
///
/// Throws  Error 65 for a parameter that is not finite, or a buffer that holds NaN
void require_finite_weights(nn::Model const& model, std::filesystem::path const& path);

} // namespace lockstep::train
