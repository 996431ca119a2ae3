#pragma once

#include "disk.hpp"

namespace lockstep::h5 {

/// While it exists, what MPI-IO refuses to write for this thread is noted in `disk`, and HDF5 hears
/// of success: after an error of its own a rank leaves HDF5's collective calls, in which the others
/// then wait for ever (1.10.8, Open MPI 4.1.4), at the close, too. What a signal cut short is done
/// again, as MPI-IO itself does not. The outermost one counts.
class RefusedWrites {
  public:
    explicit RefusedWrites(Disk& disk);
    ~RefusedWrites();
    RefusedWrites(RefusedWrites const&) = delete;
    RefusedWrites& operator=(RefusedWrites const&) = delete;

  private:
    Disk* outer_;
};

} // namespace lockstep::h5
