#pragma once

#include "h5/appender.hpp"
#include "h5/file.hpp"
#include "lockstep/task/task.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::train {

/// What the rows of a file of predictions are.
struct PredictionForm {
    task::Predicts predicts = task::Predicts::values;
    std::vector<std::string> names{};                         ///< of the classes, or of the values
    std::function<std::string(std::int64_t sample)> source{}; ///< of a sample; null: not known
    std::int64_t count = 0;                                   ///< samples in all
};

/// A file of predictions, in one of the forms that its name's ending says. Every rank turns its own
/// batches into bytes with `rows`; rank 0 alone appends them, in the order of the samples.
class PredictionFile {
  public:
    virtual ~PredictionFile() = default;

    /// The bytes of a batch whose first sample is `first`. Any rank.
    ///
    /// Throws  Error 64 for numbers that this form of file cannot hold
    virtual std::string rows(std::int64_t first, task::Prediction const& batch) const = 0;
    /// Rank 0: the next bytes. `shape` is that of a sample's numbers.
    virtual void append(std::string const& rows, std::vector<std::int64_t> const& shape) = 0;
    /// Rank 0: gives the file its name, durably.
    virtual void close() = 0;
};

/// By the ending of `path`: .csv, .jsonl or .h5. Nothing is created before the first `append`.
///
/// Throws  Error 64 for another ending, or one that cannot hold such predictions
std::unique_ptr<PredictionFile> prediction_file(std::filesystem::path const& path,
                                                PredictionForm form);

} // namespace lockstep::train
