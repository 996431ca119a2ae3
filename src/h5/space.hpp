#pragma once

#include "h5/file.hpp"

namespace lockstep::h5 {

/// A dataspace of that shape; a scalar one if the shape is empty.
Handle space_of(Shape const& shape);

Handle space_of_dataset(Handle const& dataset);

/// Empty for a scalar.
Shape shape_of(Handle const& space);

/// A selection of rows [first, first + count) of a space with at least one dimension, maybe none.
void select_rows(Handle const& space, std::uint64_t first, std::uint64_t count);

} // namespace lockstep::h5
