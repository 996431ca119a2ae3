#pragma once

#include "disk.hpp"

namespace lockstep::h5 {

/// While it exists, a write of this thread that MPI-IO refuses is recorded in `disk`, and HDF5 is
/// told that it succeeded: after an error, a rank would leave HDF5's collective calls, also that of
/// the close, and the others would wait in them for ever (1.10.8, Open MPI 4.1.4). Writes that a
/// signal interrupted are continued, which MPI-IO itself does not do. If objects are nested, the
/// outermost one counts.
///
/// In a process that is not the program's own (lockstep/app/own_process.hpp) it has no effect.
class RefusedWrites {
  public:
    explicit RefusedWrites(Disk& disk);
    ~RefusedWrites();
    RefusedWrites(RefusedWrites const&) = delete;
    RefusedWrites& operator=(RefusedWrites const&) = delete;

    /// Where this thread's refused writes are recorded; null outside all objects.
    static Disk* disk() noexcept;

  private:
    Disk* outer_;
};

} // namespace lockstep::h5
