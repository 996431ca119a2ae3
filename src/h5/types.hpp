#pragma once

#include "h5/handle.hpp"
#include "lockstep/h5/storage.hpp"

#include <hdf5.h>

#include <optional>

namespace lockstep::h5 {

/// Our element type as HDF5 stores it; f16 is made again and closed with the handle.
Handle stored_type(Type type);

/// A text of that many bytes, stored in place.
Handle text_type(std::size_t length);

/// Which of our types this HDF5 type is, if any.
std::optional<Type> known_type(Id type);

/// Which of our types this HDF5 type is in big-endian order, if any.
std::optional<Type> swapped_type(Id type);

/// One of our types that holds what this HDF5 type does, so that HDF5 can convert; none for
/// anything but numbers.
std::optional<Type> readable_type(Id type);

} // namespace lockstep::h5
