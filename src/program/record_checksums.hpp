#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep::program {

/// CRC-32 of each record of a ZIP archive, by its name without the archive's own folder. LibTorch's
/// reader has them, but does not compare them.
///
/// Source  PKWARE's APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16 and 4.5.3
/// Throws  Error 65 for an archive whose directory is damaged or has a name twice, whose records
///         overlap, or whose records' own headers say something else than the directory
std::map<std::string, std::uint32_t, std::less<>> checksums_of(std::string_view archive);

/// The checksum (CRC-32) that a ZIP archive has of a record with these contents.
std::uint32_t checksum_of_record(std::string_view contents);

} // namespace lockstep::program
