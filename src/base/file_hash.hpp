#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep {

/// A hash of the program and those of its libraries whose names contain `word`.
///
/// Throws  Error 66 or 74 when one of them cannot be read
std::uint64_t program_hash(std::string const& word);

/// A hash of all of a file, read in parts.
///
/// Throws  Error 66 or 74 when it cannot be read
std::uint64_t whole_hash(std::filesystem::path const& file);

/// A hash of a file's length, its first and its last 64 KiB: enough to tell two data sets apart.
///
/// Throws  Error 66 when it is missing
std::uint64_t rough_hash(std::filesystem::path const& file);

} // namespace lockstep
