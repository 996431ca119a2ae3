#pragma once

#include <filesystem>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace lockstep::import {

/// Which file or folder it is, whatever its name; {0, 0}: none.
std::pair<dev_t, ino_t> place_of(std::filesystem::path const& path);

/// A file below the source and the names of the folders on the way to it.
struct FoundFile {
    std::filesystem::path path;
    std::vector<std::string> folders;
};

/// What lies below a folder.
struct FoundTree {
    std::vector<FoundFile> files; ///< in natural order
    std::vector<std::vector<std::string>>
        folders;                      ///< all of them, each as the names that lead there
    std::vector<std::string> skipped; ///< a line for each kind of skipped file
};

/// Files whose names end in one of `endings`, in a folder and those below it, following links. A
/// folder of files that end in one of `frame_endings` counts as one file, and its files do not
/// count. What is hidden (.name), ends otherwise, or links back to where it lies is skipped.
///
/// Throws  Error 66 for a folder that cannot be read, or a link to nothing
FoundTree find_files(std::filesystem::path const& source, std::vector<std::string> const& endings,
                     std::vector<std::string> const& frame_endings);

/// The files of one folder whose names end in one of these and that are not hidden, in natural
/// order.
///
/// Throws  Error 66 when it cannot be read
std::vector<std::filesystem::path> files_in(std::filesystem::path const& folder,
                                            std::vector<std::string> const& endings);

} // namespace lockstep::import
