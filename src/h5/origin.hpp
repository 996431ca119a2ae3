#pragma once

#include "h5/handle.hpp"
#include "lockstep/h5/storage.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::h5 {

/// What to do about a form that only a newer HDF5 knows.
inline constexpr char const* for_older_hdf5 =
    "Write it again for older ones: h5repack --low=0 --high=2 OLD NEW with that HDF5, or "
    "h5py.File(NAME, 'w', libver=('earliest', 'v110'))";

/// The file that an open object lies in, under the name that it was found by.
std::filesystem::path file_of(Id object);

/// Where HDF5 looks, in this order, for a file that `holder` names; `variable` holds more
/// directories.
std::vector<std::filesystem::path> places_of(std::filesystem::path const& name,
                                             std::filesystem::path const& holder,
                                             char const* variable);

/// A file of raw values, and the first of them that belong to a dataset.
struct RawFile {
    std::filesystem::path path;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0; ///< as many as there may be; the last one's have no limit
};

/// Those that a dataset of `holder` keeps its bytes in; mostly none.
std::vector<RawFile> raw_files(Id creation, std::filesystem::path const& holder);

/// Throws  Error 65 that names the first filter of a dataset that is not here
void require_filters(Id creation, std::string const& path, std::filesystem::path const& holder);

/// Throws  Error 66 for a missing file of raw values; 65 for one that is too short
void require_raw_files(std::vector<RawFile> const& files, std::uint64_t bytes,
                       std::string const& path);

} // namespace lockstep::h5
