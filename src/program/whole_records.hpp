#pragma once

#include <filesystem>

namespace lockstep::program {

/// Compares the records of a ZIP archive, as LibTorch writes scripts, with their checksums, which
/// LibTorch does not do when it loads one. Archives that cannot be opened at all are left to it.
///
/// Throws  Error 65 with the name of a record that has changed, 66 or 74 for an unreadable file
void require_whole_records(std::filesystem::path const& file);

} // namespace lockstep::program
