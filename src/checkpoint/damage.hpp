#pragma once

#include "lockstep/base/error.hpp"

#include <filesystem>
#include <string>

namespace lockstep::checkpoint {

/// The error for a file that is not what it is read as, and why.
Error not_ours(std::filesystem::path const& path, std::string const& why);

/// The error for a file that lacks the array, or the like, that is requested.
Error lacking(std::filesystem::path const& path, std::string const& what);

} // namespace lockstep::checkpoint
