#pragma once

#include "h5/handle.hpp"

namespace lockstep::h5 {

/// A new list of HDF5's class of that number. From then on HDF5's errors are only exceptions: it
/// prints none.
Handle property_list(Id kind);

/// The list for a new dataset, without times: files of the same content have the same bytes.
Handle dataset_creation();

/// The list that an open dataset was made with.
Handle creation_of(Handle const& dataset);

} // namespace lockstep::h5
