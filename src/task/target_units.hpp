#pragma once

#include <torch/types.h>

#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep::task {

/// The units of a regression's targets, of which models return normalised values where a mean and a
/// standard deviation are known.
class TargetUnits {
  public:
    /// Shape  as data::Facts::target_mean
    TargetUnits(std::vector<double> mean, std::vector<double> std)
        : mean_(std::move(mean)), std_(std::move(std)) {}

    bool are_normalised() const noexcept { return !mean_.empty(); }
    /// (targets - mean) / std, and back.
    ///
    /// Shape  [n, values] float64, as is what is returned
    torch::Tensor normalised(torch::Tensor const& targets) const;
    torch::Tensor own(torch::Tensor const& outputs) const;

  private:
    /// [values] or [1] float64.
    struct Scale {
        torch::Tensor mean;
        torch::Tensor std;
    };
    Scale scale_on(torch::Device device) const;

    std::vector<double> mean_;
    std::vector<double> std_;
    mutable std::mutex mutex_; ///< replicas call from several threads
    mutable std::unordered_map<torch::Device, Scale> on_device_;
};

} // namespace lockstep::task
