#pragma once

#include "lockstep/config/deck.hpp"
#include "lockstep/task/task.hpp"
#include "step/parameter_gate.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gradient_sink.hpp"
#include "step_graphs.hpp"
#include "untouched_parameters.hpp"

namespace lockstep::train {

/// Forward and backward on one module, which runs one replica at a time.
class ModelInstance {
  public:
    struct Setup {
        nn::Model& model;
        torch::Device device; ///< of a model without parameters
        task::Task const& task;
        Layout const& layout;
        comm::Partition const& partition;
        config::Precision precision{};
        double clip = 0;               ///< as for a LocalStep
        StepGraphs* graphs = nullptr;  ///< null: every pass runs eagerly
        std::string name{};            ///< of the model, in the deck
        bool calls_own_code = false;   ///< a user's, in the model or the task
        ParameterGate* gate = nullptr; ///< as for a LocalStep
    };
    /// A micro-batch of a replica.
    struct Pass {
        int replica = 0;
        std::uint64_t random_key = 0;
        double loss_scale = 1; ///< multiplies the loss before backward, not in what is kept of it
        bool eagerly = false;  ///< even where passes are recorded
    };
    struct OfReplica {
        int replica = 0;
        task::Loss loss; ///< detached
    };
    /// Seconds in a step, without waits for parameters.
    struct Times {
        double forward = 0;
        double backward = 0;
    };

    explicit ModelInstance(Setup const& parts);

    nn::Model& model() const noexcept { return parts_.model; }
    torch::Device device() const noexcept { return device_; }
    GradientSink& sink() noexcept { return sink_; }

    /// Forgets losses and times of the step before.
    void begin_step();
    /// Directs gradients to `target` [layout.size] from now on, where they replace what it holds.
    /// `prepare`: see GradientSink; `target` has memory already where it is empty.
    void begin_replica(torch::Tensor const& target, GradientSink::Prepare prepare = {});
    /// Throws  Error 64 where the batch does not fit model and task; as GradientSink
    void run(Pass const& pass, task::Tensors const& batch);

    /// Takes the losses of all passes since the last call, in their order.
    std::vector<OfReplica> take_losses() { return std::exchange(losses_, {}); }
    Times const& times() const noexcept { return times_; }

  private:
    void run_eagerly(Pass const& pass, task::Tensors const& batch);
    void run_samples(Pass const& pass, task::Tensors const& batch);
    task::Loss forward(task::Tensors const& batch);
    void backward(torch::Tensor const& loss);
    double waited() const;
    void keep(int replica, task::Loss const& loss);

    Setup parts_;
    torch::Device device_;
    GradientSink sink_;
    UntouchedParameters untouched_;
    torch::Tensor sample_; ///< the gradient of one, where samples are clipped
    torch::Tensor sum_;    ///< where clipped ones go
    std::vector<OfReplica> losses_;
    Times times_;
};

} // namespace lockstep::train
