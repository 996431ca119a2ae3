#pragma once

#include "lockstep/base/error.hpp"

#include <optional>
#include <string>

namespace lockstep::program {

/// What LibTorch means by the first line of a text that it throws: memory that is not there, a
/// device that failed, an index that data have brought; none for all else.
std::optional<Error> error_of_torch(std::string const& text);

} // namespace lockstep::program
