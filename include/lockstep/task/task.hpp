#pragma once

#include "lockstep/config/own_keys.hpp"
#include "lockstep/nn/model.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::task {

/// One batch on the device that computes.
struct Tensors {
    torch::Tensor inputs;  ///< [n, sample…] float32
    torch::Tensor targets; ///< [n] int64
};

/// What a batch gives: the sum of its samples' losses, which autograd can differentiate, and the
/// weight that the sum over all replicas is divided by.
struct Loss {
    torch::Tensor sum;
    double weight = 0;
    std::int64_t correct = 0; ///< samples that were right; 0 where the task knows no such thing
};

/// Sums over an evaluated batch; counts are whole numbers, so adding them is exact in any order.
struct Tally {
    double loss_sum = 0;
    double weight = 0;
    std::vector<std::int64_t> counts;
};

/// Named figures, "accuracy" → 0.92.
using Metrics = std::map<std::string, double>;

/// What one step of training means.
class Task {
  public:
    virtual ~Task() = default;
    virtual Loss training_loss(nn::Model& model, Tensors const& batch) const = 0;
    virtual Tally evaluate(nn::Model& model, Tensors const& batch) const = 0;
    virtual std::size_t counts() const = 0; ///< length of Tally::counts
    virtual Metrics metrics(std::vector<std::int64_t> const& counts) const = 0;
    /// Whether more of this metric is better. Throws Error 64 for a metric it does not have.
    virtual bool more_is_better(std::string const& metric) const = 0;
};

/// A task that a deck can name.
struct TaskKind {
    std::string name;
    std::string meaning;
    std::vector<config::OwnKey> keys;
    std::vector<std::string> metrics;
    std::function<std::unique_ptr<Task>(config::OwnValues const&, std::int64_t classes)> make;
};

std::vector<TaskKind> task_kinds();

/// Throws  Error 64 when the deck names no task of ours or a key it does not have
std::unique_ptr<Task> make_task(config::Task const& chosen, std::int64_t classes);

} // namespace lockstep::task
