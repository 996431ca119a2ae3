#pragma once

#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::data {

/// What a data set file holds.
struct DataInfo {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    bool ours = false; ///< written by our importers
    bool checksums = false;
    std::int64_t samples = 0;
    std::vector<FieldInfo> fields;   ///< inputs, then targets
    std::vector<std::string> places; ///< of each field, where it does not lie in the file itself
    std::vector<std::string> class_names;
    std::vector<std::int64_t> class_counts; ///< of each class, or none where labels are not counted
    std::vector<double> mean;
    std::vector<double> std;
};

/// Of one file; `options.files` is its path.
///
/// Throws  Error 66 or 65
DataInfo describe(DatasetOptions const& options);
inline DataInfo describe(std::filesystem::path const& path) {
    return describe(DatasetOptions{path.string()});
}

/// Whether a file has checksums that `verify` can recompute. Throws as `describe`.
bool has_checksums(std::filesystem::path const& path);

/// The files that samples come from: the one that is named, and those that its links and virtual
/// datasets lead to. Throws as `describe`.
std::vector<std::filesystem::path> files_of(DatasetOptions const& options);

/// A block whose bytes are not those that were written.
struct DataDamage {
    std::string dataset; ///< or "what is not samples": names, shapes, attributes, checksums
    std::uint64_t first_byte = 0; ///< in the file
    std::uint64_t last_byte = 0;
};

/// Datasets that were added to a file of ours since it was imported: they have no checksums, and
/// names, shapes and attributes are no longer those that have one. Throws as `describe`.
std::vector<std::string> datasets_added_to(std::filesystem::path const& path);

/// Recomputes all checksums; none returned: every bit of the file is as it was imported, or of its
/// samples where datasets were added.
///
/// Throws  Error 66; 65 when the file cannot be opened or has no checksums
[[nodiscard]] std::vector<DataDamage> verify(std::filesystem::path const& path);

/// Values of a field that are not a number, or infinite.
struct NotFinite {
    std::string dataset;
    std::int64_t count = 0;
    std::int64_t samples = 0; ///< that hold them
    std::int64_t first = 0;   ///< of these samples, in the file
};

/// Warnings of a start that trains on a file. Throws as `describe`.
std::vector<std::string> warnings_of(DatasetOptions const& options);

/// Reads and decodes all of a file, ours or another's, and names the fields that are not finite.
///
/// Throws  Error 66 or 65 as `Dataset` does, or for a place's class that the file does not name
std::vector<NotFinite> look_through(DatasetOptions const& options);

} // namespace lockstep::data
