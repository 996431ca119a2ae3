#pragma once

#include "lockstep/base/error.hpp"

#include <filesystem>
#include <string>
#include <sys/types.h>

namespace lockstep {

/// What is not a regular file, in words ("a pipe"), by its mode; empty for one that is.
std::string kind_text(mode_t mode);

/// Why a file cannot be opened for writing, by errno: it is another user's, else as
/// `creation_error`.
Error output_error(std::string const& what, std::filesystem::path const& file, int error_number);

} // namespace lockstep
