#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::data {

/// Told how far an import is: the file being written, samples done and in all.
using ImportProgress =
    std::function<void(std::filesystem::path const&, std::int64_t done, std::int64_t all)>;

struct ImportedFile {
    std::filesystem::path path;
    std::int64_t samples = 0;
    std::uint64_t bytes = 0;
};

struct IdxImport {
    std::filesystem::path source; ///< a directory with train-… and t10k-… files, or "IMAGES,LABELS"
    std::filesystem::path out;        ///< for a directory: a directory; for a pair: a file
    std::vector<std::string> classes; ///< names; "0", "1", … when empty
    double validation_share = 0;      ///< of each class of a directory's training images, in [0, 1)
};

/// Imports IDX files, plain or gzipped (the format of MNIST and its kin): train.h5 and test.h5
/// from a directory, validation.h5 where a share is asked for, one file from a pair. Mean and
/// standard deviation are those of the training images in units of value / 255.
///
/// Throws  Error 66 for a missing source, 65 for a damaged one, 73 or 74 when OUT cannot be written
std::vector<ImportedFile> import_idx(IdxImport const& options, ImportProgress const& progress);

struct Hdf5Import {
    std::filesystem::path source;
    std::filesystem::path out;
    std::string inputs = "inputs";
    std::string targets = "targets";
    std::vector<std::string> classes; ///< empty: the source's, or "0", "1", …
};

/// Writes any HDF5 file with one entry a sample, whatever its layout and filters, in our form.
///
/// Throws  as `import_idx`
ImportedFile import_hdf5(Hdf5Import const& options, ImportProgress const& progress);

} // namespace lockstep::data
