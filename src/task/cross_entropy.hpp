#pragma once

#include "lockstep/task/task.hpp"

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::task {

/// The label of a place that does not count.
inline constexpr std::int64_t ignored_place = -1;

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

    /// Labels may be `ignored_place` from now on: those places are left out of losses and counts.
    void ignore_places() noexcept { ignores_ = true; }

    /// Shape  logits [n, classes, place…] float32, labels [n, place…] int64
    Loss training_loss(torch::Tensor const& logits, torch::Tensor const& labels) const;
    /// Evaluates without weights and smoothing. Counts as `class_counts_of`.
    Tally evaluate(torch::Tensor const& logits, torch::Tensor const& labels) const;
    /// The mean over the places of each sample, 0 for one without places that count; with the
    /// classes' weights if `weighted`.
    ///
    /// Shape  as training_loss, at least one place; returns [n]
    torch::Tensor means(torch::Tensor const& logits, torch::Tensor const& labels,
                        bool weighted) const;

  private:
    /// [classes], on a device that computes.
    struct Weights {
        torch::Tensor exact;   ///< float64
        torch::Tensor rounded; ///< float32
    };
    Weights weights_on(torch::Device device) const;
    /// Where none is to be ignored, one that no label has: whatever is wrong is told.
    std::int64_t ignored_index() const noexcept { return ignores_ ? ignored_place : no_label; }

    static constexpr std::int64_t no_label = -100; ///< torch's own default

    std::int64_t classes_;
    double label_smoothing_;
    bool ignores_ = false;
    std::vector<double> weights_; ///< empty: all 1
    mutable std::mutex mutex_;    ///< replicas call from several threads
    mutable std::unordered_map<torch::Device, Weights> on_device_;
};

} // namespace lockstep::task
