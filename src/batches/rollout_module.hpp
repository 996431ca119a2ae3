#pragma once

#include "batches/data_module.hpp"
#include "batches/make_data_module.hpp"
#include "step/batch_source.hpp"

#include "rollout.hpp"
#include "rollout_plan.hpp"

namespace lockstep::train {

/// Hands out the batches of proximal policy optimisation. An epoch is one iteration: every replica
/// acts in its own environments for rollout-steps steps with the weights of that moment; for every
/// PPO epoch, what they collected is divided into steps in an order drawn from (seed, iteration,
/// pass, replica).
class RolloutModule : public DataModule {
  public:
    /// Throws  Error 64 as make_rollout_module
    explicit RolloutModule(DataModuleParts const& parts);

    std::int64_t steps_per_epoch() const override { return plan_.steps_per_epoch(); }
    std::int64_t samples_per_epoch() const override {
        return plan_.steps_per_epoch() * plan_.samples_in_step();
    }
    std::int64_t samples_in_step(std::int64_t) const override { return plan_.samples_in_step(); }
    int micro_batches(std::int64_t in_epoch) const override;
    std::int64_t max_steps() const override;
    bool is_exhausted(std::int64_t step) const override;
    std::uint64_t fingerprint() const override { return fingerprint_; }
    std::unique_ptr<BatchSource> batches(std::int64_t first_step,
                                         std::int64_t total_steps) override;
    void prepare(std::int64_t step) override;
    std::map<std::string, double> epoch_figures() const override;
    bool has(Set set) const override { return samples(set) > 0; }
    std::int64_t samples(Set set) const override;
    std::optional<Evaluation> measure(Set set, StopEvaluation const& stop,
                                      LendParameters const& lend) override;
    std::vector<ReplicaArray> state() override;
    void restored(std::int64_t step) override;

  private:
    class Batches;

    std::vector<std::int64_t> sequences(std::int64_t step, int micro, std::int64_t replica) const;
    void sum_over_replicas(std::int64_t step);
    std::vector<double> sums_of(std::size_t replica, std::int64_t iteration) const;

    comm::Communicator const& world_;
    config::Deck const& deck_;
    task::PpoOptions options_;
    nn::Policy& policy_;
    rl::EnvironmentMaker make_;
    std::vector<std::int64_t> observation_shape_;
    comm::TreeNode own_;
    torch::Device device_;
    RolloutPlan plan_;
    std::vector<Rollout> rollouts_;
    std::uint64_t fingerprint_ = 0; ///< of the environment's files; 0: it has none
    // Values of the iteration, over all replicas.
    rl::Episodes episodes_;
    double episodes_ever_ = 0;
    std::vector<rl::Scale> scales_; ///< of advantages, by step
};

} // namespace lockstep::train
