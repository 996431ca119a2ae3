#pragma once

#include "h5/handle.hpp"

#include <filesystem>

namespace lockstep::h5 {

/// What to do about a form that only a newer HDF5 knows.
inline constexpr char const* for_older_hdf5 =
    "If the file is damaged, copy it again from its source. Otherwise write it for older versions "
    "of HDF5, with the newer version's h5repack --low=0 --high=2 OLD NEW, or in Python with "
    "h5py.File(NAME, 'w', libver=('earliest', 'v110'))";

/// The file that an open object lies in, under the name that it was found by.
std::filesystem::path file_of(Id object);

} // namespace lockstep::h5
