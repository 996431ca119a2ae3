#include "property_list.hpp"

#include <hdf5.h>

namespace lockstep::h5 {

Handle property_list(Id kind) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    return {check(H5Pcreate(kind), Doing::planning, "H5Pcreate"), H5Pclose};
}

Handle dataset_creation() {
    auto list = property_list(H5P_DATASET_CREATE);
    check(H5Pset_obj_track_times(list.id(), false), Doing::planning, "H5Pset_obj_track_times");
    return list;
}

Handle creation_of(Handle const& dataset) {
    return {check(H5Dget_create_plist(dataset.id()), Doing::reading, "H5Dget_create_plist"),
            H5Pclose};
}

} // namespace lockstep::h5
