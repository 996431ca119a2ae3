#pragma once

#include <filesystem>
#include <string>

namespace lockstep::import {

/// A CSV or TSV file that lists files with what is known of them; its first line names the columns.
struct LabelFile {
    std::filesystem::path path{}; ///< empty: classes are the folders
    std::string file = "file";    ///< column with the files' names, relative to the source
    std::string label = "label";  ///< column with the classes' names
};

} // namespace lockstep::import
