#pragma once

#include "lockstep/base/error.hpp"

#include <filesystem>

namespace lockstep {

/// An `Error` for an input that cannot be opened, by `error_number`: one that is missing, is a
/// directory or may not be read is 66, all others are as in `system_error`.
Error input_error(std::filesystem::path const& path, int error_number);

} // namespace lockstep
