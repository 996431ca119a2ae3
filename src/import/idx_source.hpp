#pragma once

#include "import/source.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::import {

struct IdxImport {
    std::filesystem::path
        source{}; ///< a directory with train-… and t10k-… files, or "IMAGES,LABELS"
    std::vector<std::string> classes{}; ///< names; "0", "1", … when empty
};

/// IDX files, plain or gzipped (the format of MNIST and its kin): a training and a test set from a
/// directory, one set from a pair. Mean and standard deviation are in units of value / 255.
///
/// Throws  Error 66 for a missing source, 65 for a damaged one
std::unique_ptr<ImportSource> idx_source(IdxImport const& options);

} // namespace lockstep::import
