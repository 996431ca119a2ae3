#pragma once

#include "h5/handle.hpp"

namespace lockstep::h5 {

/// A new list of HDF5's class of that number. From then on HDF5's errors come back as exceptions
/// alone: it prints none.
Handle property_list(Id kind);

/// Of a new dataset, without times: files of the same content are the same bytes.
Handle dataset_creation();

/// Of a new object, with the groups on its way.
Handle link_creation();

/// That an open dataset was made with.
Handle creation_of(Handle const& dataset);

} // namespace lockstep::h5
