#pragma once

#include <filesystem>

namespace lockstep {

/// Whether anything has this name, in a directory that a user has named. Where something of this
/// user has it, others cannot exchange it, unless they may rename all that lies there.
///
/// Throws  Error 73 as `require_own_place`
bool has_own_place(std::filesystem::path const& file);

/// Makes a directory of a name that the program has chosen itself.
///
/// Throws  Error 73 where it cannot be made, and as `require_own_place`, also for what others have
///         put there meanwhile
void make_own_directory(std::filesystem::path const& path);

} // namespace lockstep
