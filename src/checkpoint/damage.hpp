#pragma once

#include "lockstep/base/error.hpp"

#include <filesystem>
#include <string>

namespace lockstep::checkpoint {

/// That a file is not what it is read as, and why.
Error not_ours(std::filesystem::path const& path, std::string const& why);

/// That a file has not the array, or the like, that is asked for.
Error lacking(std::filesystem::path const& path, std::string const& what);

} // namespace lockstep::checkpoint
