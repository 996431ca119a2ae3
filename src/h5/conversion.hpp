#pragma once

#include "h5/handle.hpp"
#include "lockstep/h5/storage.hpp"

#include <string>

namespace lockstep::h5 {

/// Reading into another type than the stored one. Where the type cannot hold a value, HDF5 silently
/// takes the nearest one; here that is an error.
class Conversion {
  public:
    Conversion();
    Conversion(Conversion const&) = delete;
    Conversion& operator=(Conversion const&) = delete;

    /// The property list for H5Dread.
    Id list() const noexcept { return list_.id(); }

    /// Throws  Error 65 if a value did not fit
    void require_fit(std::string const& dataset, Type type) const;

  private:
    bool lost_ = false;
    Handle list_;
};

} // namespace lockstep::h5
