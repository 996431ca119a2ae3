#include "space.hpp"

#include <hdf5.h>

namespace lockstep::h5 {

Handle space_of(Shape const& shape) {
    if (shape.empty()) {
        return {check(H5Screate(H5S_SCALAR), Doing::planning, "H5Screate"), H5Sclose};
    }
    std::vector<hsize_t> const extents(shape.begin(), shape.end());
    return {check(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                  Doing::planning, "H5Screate_simple"),
            H5Sclose};
}

Handle space_of_dataset(Handle const& dataset) {
    return {check(H5Dget_space(dataset.id()), Doing::reading, "H5Dget_space"), H5Sclose};
}

Shape shape_of(Handle const& space) {
    if (H5Sget_simple_extent_type(space.id()) == H5S_NULL) {
        return {0};
    }
    auto const rank =
        check(H5Sget_simple_extent_ndims(space.id()), Doing::reading, "H5Sget_simple_extent_ndims");
    std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
    if (rank > 0) {
        check(H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr), Doing::reading,
              "H5Sget_simple_extent_dims");
    }
    return {extents.begin(), extents.end()};
}

void select_rows(Handle const& space, std::uint64_t first, std::uint64_t count) {
    if (count == 0) {
        check(H5Sselect_none(space.id()), Doing::planning, "H5Sselect_none");
        return;
    }
    auto const shape = shape_of(space);
    std::vector<hsize_t> start(shape.size(), 0);
    std::vector<hsize_t> extent(shape.begin(), shape.end());
    start.at(0) = first;
    extent.at(0) = count;
    check(H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, extent.data(),
                              nullptr),
          Doing::planning, "H5Sselect_hyperslab");
}

} // namespace lockstep::h5
