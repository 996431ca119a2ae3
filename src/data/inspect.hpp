#pragma once

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
    std::vector<std::string> places; ///< of each field, where it is if not in the file itself
    std::int64_t tokens = 0;         ///< of texts, in all documents
    std::int64_t documents = 0;
    std::vector<std::string> class_names;
    std::vector<std::int64_t> class_counts; ///< of each class, or none where labels are not counted
    std::vector<double> mean;
    std::vector<double> std;
    std::string first_source; ///< what the first sample, or document, was made from; or empty
    std::string last_source;
};

/// Describes one file; `options.files` is its path.
///
/// Throws  Error 66 or 65
DataInfo describe(DatasetOptions const& options);
inline DataInfo describe(std::filesystem::path const& path) {
    return describe(DatasetOptions{path.string()});
}

/// The files that samples come from: the one that is named, and those that its links and virtual
/// datasets lead to. Throws as `describe`.
std::vector<std::filesystem::path> files_of(DatasetOptions const& options);

/// The warnings that a training start prints about a file. Throws as `describe`.
std::vector<std::string> warnings_of(DatasetOptions const& options);

/// The same options for a file of texts, which has no targets of its own: with a default
/// `sequence`, where none was named. Throws as `describe`.
DatasetOptions for_texts(DatasetOptions options);

/// The same options where `files` is the name of one file, whatever characters it has.
DatasetOptions alone(DatasetOptions options);

} // namespace lockstep::data
