#pragma once

#include "h5/file.hpp"

#include <string>

#include "source_field.hpp"

namespace lockstep::import {

/// A warning that inputs without mean and std are far from 0 and 1, as pixels from 0 to 255 are
/// that are stored as floating-point numbers. Looks at a few samples only. Empty: nothing to tell.
std::string unscaled_text(h5::File const& file, SourceField const& inputs);

} // namespace lockstep::import
