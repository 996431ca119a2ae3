#pragma once

#include "h5/handle.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::h5 {

/// A filter that chunks of a dataset went through.
struct StoredFilter {
    int code = 0;     ///< as registered with The HDF Group
    std::string name; ///< as the file has it; may be empty
};

/// The filters of a dataset, in the order in which its chunks went through them.
std::vector<StoredFilter> filters_of(Id creation);

/// Throws  Error 65 that names the first filter of a dataset that is not available
void require_filters(Id creation, std::string const& path, std::filesystem::path const& holder);

} // namespace lockstep::h5
