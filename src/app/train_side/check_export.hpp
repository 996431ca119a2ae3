#pragma once

#include "lockstep/config/deck.hpp"
#include "model_files/saved_model.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::app {

/// How an exported file compares with the model that it was made from.
struct ExportDifference {
    std::int64_t samples = 0;
    double largest = 0;           ///< difference of two outputs
    double largest_relative = 0;  ///< the same, over 1 + the size of ours
    double step = 0;              ///< of a byte that covers the range of all our outputs
    std::int64_t predictions = 0; ///< largest outputs of a sample, or of its places, by class
    std::int64_t other_predictions = 0;
    double seconds_per_sample = 0;      ///< of the file, on one core
    std::vector<std::string> remarks{}; ///< on the set
};

/// Runs `file` and the model on the first samples of `set`; samples with another number of rows
/// than the file takes are cut, or padded with zeros.
///
/// Throws  as train::samples_for and deploy::run_exported
ExportDifference compare_export(std::filesystem::path const& file, train::SavedModel const& saved,
                                config::Data const& data, std::int64_t samples);

/// Seconds that an exported file needs for one sample of zeros, on one core.
///
/// Throws  as deploy::run_exported
double export_latency(std::filesystem::path const& file,
                      std::vector<lower::ExportInput> const& inputs);

} // namespace lockstep::app
