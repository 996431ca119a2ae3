#pragma once

#include "checkpoint/weights.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::federate {

/// A model as a federation averages it: all real values, parameters and buffers, one tensor after
/// the other in the order of their names. Whole numbers (counts of batch norm) stay those of the
/// first weights.
class ModelVector {
  public:
    /// Reads a checkpoint, a model file or a safetensors file; with a global model, also the
    /// server's state.
    ///
    /// Throws  Error 66 when there is no such file, 65 when it is none of these or is damaged
    static ModelVector read(std::filesystem::path const& path);

    std::vector<float> values;
    /// With fedadam, each as long as `values`; else empty.
    std::vector<double> first_moment;
    std::vector<double> second_moment;
    /// With scaffold, the mean of the sites' control variates, as long as `values`; else empty.
    std::vector<float> control;
    /// Samples of all sites that the mean was taken over; 0: not known.
    double control_samples = 0;

    /// For each value whether it belongs to a buffer: to a statistic of batch norm, by its name, or
    /// to another one that the file of the first weights names.
    std::vector<bool> buffers() const;
    /// The first tensor that is a statistic of batch norm; empty: there is none.
    std::string statistic() const;

    /// What the file of the first weights says of itself.
    checkpoint::Record const& record() const noexcept { return record_; }
    checkpoint::Record& record() noexcept { return record_; }

    /// A hash of the names and shapes.
    std::string fingerprint() const;
    /// A hash of all that a site takes from a file of it: the values, and what the record says of
    /// the model and its data (mean and std, classes, tokenizer, ...).
    std::string digest() const;
    /// Whether this is its digest, or that of the values alone, which earlier versions have signed.
    bool has_digest(std::string const& digest) const;

    /// Writes a model file, which `lockstep evaluate` and model.weights read, under a temporary
    /// name, syncs and renames it. `round`: the round after which it is the global model.
    ///
    /// Throws  Error 73 when the file cannot be created, 74 for a full disk
    void write(std::filesystem::path const& path, std::int64_t round) const;

  private:
    std::string digest_of_values() const;

    using TensorInfo = checkpoint::Weights::TensorInfo;

    std::vector<TensorInfo> entries_;            ///< by name
    std::vector<std::vector<std::byte>> wholes_; ///< of each entry that has whole numbers
    checkpoint::Record record_;
};

} // namespace lockstep::federate
