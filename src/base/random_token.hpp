#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// Random bytes from the system, in hexadecimal digits.
///
/// Throws  Error 69 where the system gives none
std::string random_token(std::size_t bytes);

} // namespace lockstep
