#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

/// Makes an empty file that only its owner may read, whatever the umask is.
///
/// Throws  Error 73 or 74 where it cannot be made, or there is one
void make_secret_file(std::filesystem::path const& file);

/// Makes a file that only its owner may read, durably; nobody sees it before it is complete.
///
/// Throws  Error 73 or 74 where it cannot be made
void write_secret_text(std::filesystem::path const& file, std::string const& text);

/// The text of such a file, of at most 4096 bytes. `danger`, what others could do with it, is said
/// in the error where they may read it; `what_to_do` in the error where there is no file.
///
/// Throws  Error 64 where others may read or write it; 65 where it is longer; 66 when there is none
std::string read_secret_text(std::filesystem::path const& file, std::string const& danger,
                             std::string const& what_to_do);

} // namespace lockstep
