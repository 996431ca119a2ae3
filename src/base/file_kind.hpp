#pragma once

#include "base/file.hpp"

#include <filesystem>
#include <string>

namespace lockstep {

/// What a file is, judged by its bytes and not by its name, and how to turn it into something that
/// this program reads; each of these three is a sentence without its full stop, or empty.
struct FileKind {
    std::string name;    ///< "a PNG image"; empty: nothing that is known here
    std::string data;    ///< how it becomes a data set
    std::string weights; ///< how it becomes weights that model.weights takes
    std::string script;  ///< how it becomes a TorchScript module
    bool is_cut = false; ///< it is cut off, or damaged in a way that looks like it
};

/// Looks at the beginning of the file, and at an archive's list of contents. HDF5 files, except for
/// the messages of a federation, and unreadable files are of no kind: the error of opening them
/// says more.
FileKind kind_of_file(std::filesystem::path const& path);

/// Whether it begins like a safetensors file: the length of a JSON text, and that text.
///
/// Throws  Error 74 when it cannot be read
bool begins_as_safetensors(File const& file);

/// Whether it is an HDF5 file, as models, checkpoints and data sets are; not where it cannot be
/// read.
bool is_hdf5(std::filesystem::path const& path);

} // namespace lockstep
