#pragma once

#include <string>

namespace lockstep::h5 {

/// The HDF5 that is loaded: "1.10.8".
std::string library_version();

} // namespace lockstep::h5
