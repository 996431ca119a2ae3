#pragma once

#include <string>

namespace lockstep::program {

/// Whether this processor runs code for `kind`: x86-64-v2, x86-64-v3 or x86-64-v4 as in the x86-64
/// psABI, on others the name of the machine (uname).
bool processor_runs(std::string const& kind);

} // namespace lockstep::program
