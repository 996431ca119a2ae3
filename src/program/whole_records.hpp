#pragma once

#include <filesystem>
#include <string>

namespace lockstep::program {

/// Compares the records of a ZIP archive, as LibTorch writes scripts, with their checksums, which
/// LibTorch does not do when it loads one. Archives that cannot be opened at all are left to it.
///
/// Throws  Error 65 with the name of a record that has changed, 66 or 74 for an unreadable file
void require_whole_records(std::filesystem::path const& file);

/// A record of such an archive; empty where there is none, or the file is no archive.
///
/// Throws  Error 66 or 74 for an unreadable file
std::string record_of(std::filesystem::path const& file, std::string const& record);

} // namespace lockstep::program
