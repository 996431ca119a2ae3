#pragma once

#include "h5/handle.hpp"

#include <hdf5.h>

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::test {

/// A file of nothing but external links to objects of another file, under their own names.
inline void write_links(std::filesystem::path const& path, std::string const& target,
                        std::vector<std::string> const& names) {
    h5::Handle file{h5::check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                              h5::Doing::writing, "H5Fcreate"),
                    H5Fclose};
    for (auto const& name : names) {
        h5::check(H5Lcreate_external(target.c_str(), name.c_str(), file.id(), name.c_str(),
                                     H5P_DEFAULT, H5P_DEFAULT),
                  h5::Doing::writing, "H5Lcreate_external");
    }
    file.close();
}

} // namespace lockstep::test
