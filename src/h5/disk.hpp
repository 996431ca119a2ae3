#pragma once

#include "h5/handle.hpp"

#include <atomic>
#include <memory>

namespace lockstep::h5 {

/// What the system refused while a file was written. HDF5 does not see the failure, since it does
/// not recover from a write or close that fails, and crashes later, at the end of MPI at the latest
/// (1.10.8). Writers must check here instead, after the close at the latest.
class Disk {
  public:
    void note(int error_number) {
        int none = 0;
        error_number_.compare_exchange_strong(none, error_number); // the first one counts
    }
    int error_number() const { return error_number_.load(); } ///< 0: none

  private:
    std::atomic<int> error_number_{0};
};

/// Files that are opened with this access list go through POSIX, and record failed writes in
/// `disk`. A failed read is an error of HDF5, as usual.
void use_disk(Handle const& access, std::shared_ptr<Disk> const& disk);

} // namespace lockstep::h5
