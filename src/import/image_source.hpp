#pragma once

#include "import/label_file.hpp"
#include "import/source.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "alpha.hpp"

namespace lockstep::import {

struct ImageImport {
    std::filesystem::path source{};
    LabelFile labels{};
    std::string split_by{}; ///< a column of the label file, or "folder": the folder below the class
    std::uint64_t width = 0; ///< 0: all images must have one size
    std::uint64_t height = 0;
    bool center_crop = false; ///< keeps the proportions, and cuts off what is too much
    std::uint64_t shorter =
        0; ///< of the sides before it is cut; 0: so that it just covers the size
    bool gray = false;
    bool flat = false; ///< in gray: samples are [height, width], as those of an IDX file
    Alpha alpha = Alpha::drop;
    /// For each channel, or one for all, of values from 0 to 1; empty: those of the training set.
    std::vector<double> mean{};
    std::vector<double> std{};
    bool unlabelled = false; ///< samples have no targets, and files any place below the source
    std::vector<std::filesystem::path> more{}; ///< unlabelled: files and folders besides the source
};

/// PNG and JPEG files in a folder for each class (below train, validation and test where these
/// are there), or listed in a file. Samples are u8, [3, height, width], or [1, …] in gray; with
/// Alpha::keep one channel more. Unlabelled: inputs alone, of all files below the source.
std::unique_ptr<ImportSource> image_source(ImageImport const& options);

} // namespace lockstep::import
