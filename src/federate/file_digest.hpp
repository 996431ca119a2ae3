#pragma once

#include "base/file.hpp"
#include "federate/keys.hpp"

#include <cstdint>

namespace lockstep::federate {

/// The digest of a file's bytes from `from` to its end, which are read part by part.
///
/// Throws  Error 74 when the file cannot be read
Digest digest_of(File const& file, std::uint64_t from = 0);

} // namespace lockstep::federate
