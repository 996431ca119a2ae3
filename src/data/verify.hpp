#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::data {

/// Whether a file has checksums that `verify` can recompute. Throws as `describe`.
bool has_checksums(std::filesystem::path const& path);

/// A block whose bytes are not those that were written.
struct DataDamage {
    std::string
        dataset; ///< or "the part outside the samples": names, shapes, attributes, checksums
    std::uint64_t first_byte = 0; ///< in the file
    std::uint64_t last_byte = 0;
};

/// Datasets that were added to a file of ours since it was imported: they have no checksums, and
/// the checksum of names, shapes and attributes no longer applies. Throws as `describe`.
std::vector<std::string> datasets_added_to(std::filesystem::path const& path);

/// One of equal parts of a file's blocks; part 0 has what lies outside of the samples, too.
struct VerifiedPart {
    std::uint64_t which = 0;
    std::uint64_t parts = 1;
};

/// Recomputes all checksums. If the result is empty, every bit of the file is as it was imported,
/// or every bit of its samples where datasets were added. `part`: only of these blocks.
///
/// Throws  Error 66 when there is no such file; 65 when it cannot be opened or has no checksums
[[nodiscard]] std::vector<DataDamage> verify(std::filesystem::path const& path,
                                             VerifiedPart part = {});

} // namespace lockstep::data
