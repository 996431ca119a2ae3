#pragma once

#include "lockstep/data/import.hpp"

#include <set>
#include <string>
#include <vector>

#include "csv.hpp"

namespace lockstep::data {

/// Files with what is known of them.
struct Listing {
    struct Entry {
        std::filesystem::path path;
        std::int64_t label = 0;
        std::string group;
        std::string set; ///< empty: none said
    };
    std::vector<Entry> entries; ///< in order of their paths, or of the table
    std::vector<std::string> class_names;

    /// All names, labels and groups, with sizes and times of change.
    std::string identity() const;
};

struct ListingOptions {
    std::filesystem::path source;
    LabelFile labels;
    std::string split_by;             ///< a column, or "folder"
    std::vector<std::string> endings; ///< of the files that count, such as ".png"
    /// Of files whose folder counts, as a whole; none: no folder does.
    std::vector<std::string> frame_endings{};
};

/// The files of SOURCE/CLASS/…, of SOURCE/train/CLASS/… and its kin, or of a label file.
///
/// Throws  Error 66 when there are none; 65 for a label file without the columns; 64
Listing list_files(ListingOptions const& options);

/// The file that a row of a table names, and its set there; empty where the table has none.
///
/// Throws  Error 65 that names the line when there is no name, or a folder's where `folders` do not
///         count; or a set that is none
std::filesystem::path listed_file(CsvTable const& table, CsvTable::Row const& row,
                                  std::size_t column, std::filesystem::path const& source,
                                  bool folders = false);
std::string listed_set(CsvTable const& table, CsvTable::Row const& row);

/// Class names in order: of their numbers where all are whole numbers, else of their bytes.
std::vector<std::string> ordered_names(std::set<std::string> const& names);

/// The files of a directory that end like one of these, in order of their names.
std::vector<std::filesystem::path> files_in(std::filesystem::path const& directory,
                                            std::vector<std::string> const& endings);

/// Whether a path ends like one of these, in any case of letters.
bool has_ending(std::filesystem::path const& path, std::vector<std::string> const& endings);

} // namespace lockstep::data
