#pragma once

#include <string>

namespace lockstep::h5 {

/// Why HDF5's last call failed.
struct Fault {
    std::string why;      ///< never empty
    int error_number = 0; ///< where the system refused a call: its errno
};

/// Takes the fault off HDF5's error stack.
Fault take_fault();

} // namespace lockstep::h5
