#pragma once

#include <filesystem>

namespace lockstep::federate {

/// `directory` / `relative`, where no directory below `directory` is a link: all who take part may
/// write there, and a link of theirs may lead to any file of this user. The user has named
/// `directory`, which may be one; a file itself is replaced by its rename, never written through.
///
/// Throws  Error 73 where one is, whoever has made it
std::filesystem::path shared_path(std::filesystem::path const& directory,
                                  std::filesystem::path const& relative);

} // namespace lockstep::federate
