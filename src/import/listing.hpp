#pragma once

#include "import/image_source.hpp"

#include <string>
#include <vector>

namespace lockstep::import {

struct ListingOptions {
    std::filesystem::path source;
    LabelFile labels;
    std::string split_by;             ///< a column, or "folder"
    std::vector<std::string> endings; ///< of the files that count, such as ".png"
    /// Endings of files whose folder counts as one file; empty: no folder does.
    std::vector<std::string> frame_endings{};
    bool unlabelled = false; ///< every file below the source counts, and none has a class
    std::vector<std::filesystem::path> more{}; ///< unlabelled: files and folders besides the source
};

/// Files, with what is known about them.
struct Listing {
    struct ListedFile {
        std::filesystem::path path;
        std::int64_t label = 0; ///< -1: none
        std::string group;
        std::string set;       ///< empty: none said
        std::int64_t line = 0; ///< of the table
    };
    std::vector<ListedFile> entries; ///< in natural order of their paths, or in that of the table
    std::vector<std::string> class_names;
    std::vector<std::string> remarks{}; ///< what is skipped in the source, or occurs twice

    /// The directory that the names of entries are told below; empty: they are told whole.
    std::filesystem::path root{};

    /// Where a table's files are, among which there may be more than it lists; empty: nowhere.
    ListingOptions looked_in{};

    /// All names, labels and groups, with sizes and times of change.
    std::string identity() const;
};

/// The files of SOURCE/CLASS/…, of SOURCE/train/CLASS/… and its kin, or of a label file;
/// unlabelled: all files below the source, or the source itself where it is a file.
///
/// Throws  Error 66 when there are none; 65 for a label file without the columns, a folder of a
///         class without files, or a file that is listed twice with different labels; 64
Listing list_files(ListingOptions const& options);

/// A line on the files that no row of the table names; empty where there are none, and where the
/// files are those of folders. Looks through the whole source.
std::string unlisted(Listing const& listing);

/// Refuses a file that occurs twice, by its name or by links, in two sets or with two meanings;
/// `meanings` says what each entry means. Other repetitions are added to the remarks.
///
/// Throws  Error 65
void require_once(Listing& listing, std::vector<std::string> const& meanings);

} // namespace lockstep::import
