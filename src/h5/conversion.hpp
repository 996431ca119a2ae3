#pragma once

#include "h5/handle.hpp"
#include "lockstep/h5/storage.hpp"

#include <string>

namespace lockstep::h5 {

/// Reading into another type than the stored one. HDF5 takes the nearest value that the type can
/// hold for one that it cannot, without a word; here that ends the reading.
class Conversion {
  public:
    Conversion();
    Conversion(Conversion const&) = delete;
    Conversion& operator=(Conversion const&) = delete;

    /// For H5Dread.
    Id list() const noexcept { return list_.id(); }

    /// Throws  Error 65 that says so, if a value did not fit
    void require_fit(std::string const& dataset, Type type) const;

  private:
    bool lost_ = false;
    Handle list_;
};

} // namespace lockstep::h5
