#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

/// What a file is by its own bytes, whatever its name, and what makes of it something that this
/// program reads; each of the three is a sentence without its full stop, or empty.
struct FileKind {
    std::string name;    ///< "a PNG image"; empty: nothing that is known here
    std::string data;    ///< how it becomes a data set
    std::string weights; ///< how it becomes weights that model.weights takes
    std::string script;  ///< how it becomes a TorchScript module
};

/// Looks at the beginning, and into the list of what an archive holds. Files of HDF5 and those that
/// cannot be read are of no kind: whoever opens them says more.
FileKind kind_of_file(std::filesystem::path const& path);

} // namespace lockstep
