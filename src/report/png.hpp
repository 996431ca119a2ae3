#pragma once

#include "lockstep/events/events.hpp"

#include <filesystem>
#include <string>

namespace lockstep::report {

/// The bytes of a PNG file of 8 bits a channel.
///
/// Throws  Error 70 when it cannot be compressed
std::string png_of(train::Picture const& picture);

/// Writes such a file, which gets its name when it is whole.
///
/// Throws  as png_of; Error 73 or 74 when it cannot be written
void write_png(std::filesystem::path const& path, train::Picture const& picture);

} // namespace lockstep::report
