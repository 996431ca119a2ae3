#pragma once

#include <filesystem>
#include <string_view>

namespace lockstep::import {

/// Checks a file before it is opened: opening a pipe would wait for ever.
///
/// Throws  Error 66 when there is none, when it is no file, or may not be read
void require_file(std::filesystem::path const& path);

/// Throws  Error 65 where the beginning of a file is no text, and tells what the file is instead
void require_text(std::filesystem::path const& path, std::string_view beginning);

} // namespace lockstep::import
