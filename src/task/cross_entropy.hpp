#pragma once

#include "lockstep/task/task.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::task {

/// Cross entropy over classes, weighted by class where the deck says so.
class CrossEntropy {
  public:
    /// `weights` and `counts` as `class_weights` takes them.
    ///
    /// Throws  Error as `class_weights` does
    CrossEntropy(std::string const& weights, std::vector<std::int64_t> const& counts,
                 std::int64_t classes, double label_smoothing = 0);

    std::int64_t classes() const noexcept { return classes_; }
    /// Empty: all 1.
    std::vector<double> const& class_weights() const noexcept { return weights_; }

    /// Shape  logits [n, classes, place…] float32, labels [n, place…] int64
    Loss training_loss(torch::Tensor const& logits, torch::Tensor const& labels) const;
    /// Evaluates without weights and smoothing. Counts as `class_counts_of`.
    Tally evaluate(torch::Tensor const& logits, torch::Tensor const& labels) const;

  private:
    /// [classes], on a device that computes.
    struct Weights {
        torch::Tensor exact;   ///< float64
        torch::Tensor rounded; ///< float32
    };
    Weights weights_on(torch::Device device) const;

    std::int64_t classes_;
    double label_smoothing_;
    std::vector<double> weights_; ///< empty: all 1
    mutable std::mutex mutex_;    ///< replicas call from several threads
    mutable std::unordered_map<torch::Device, Weights> on_device_;
};

} // namespace lockstep::task
