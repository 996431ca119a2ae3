#pragma once

#include "batches/data_module.hpp"
#include "batches/make_data_module.hpp"
#include "data/augment.hpp"
#include "data/plan.hpp"
#include "step/batch_source.hpp"

#include <map>

#include "step_batches.hpp"

namespace lockstep::train {

/// Hands out the samples of data sets: every sample once per epoch.
class DatasetModule : public DataModule {
  public:
    /// Throws  Error 64 when there are too few samples
    explicit DatasetModule(DataModuleParts const& parts);

    std::int64_t steps_per_epoch() const override { return plan_.steps_per_epoch(); }
    std::int64_t samples_per_epoch() const override { return plan_.samples_per_epoch(); }
    std::int64_t samples_in_step(std::int64_t in_epoch) const override {
        return plan_.samples_in_step(in_epoch);
    }
    int micro_batches(std::int64_t in_epoch) const override {
        return plan_.micro_batches(in_epoch);
    }
    std::int64_t max_steps() const override { return max_steps_; }
    std::uint64_t fingerprint() const override { return parts_.work.train->fingerprint(); }
    std::unique_ptr<BatchSource> batches(std::int64_t first_step,
                                         std::int64_t total_steps) override;
    std::unique_ptr<BatchSource> batches_of(std::int64_t step, int replica) override;
    bool has_batches_of_others() const override { return true; }
    Magnitudes require_finite(std::int64_t step) const override;
    std::vector<std::vector<std::int64_t>> samples_of(std::int64_t step) const override;
    bool has(Set set) const override { return dataset(set) != nullptr; }
    std::int64_t samples(Set set) const override { return has(set) ? dataset(set)->samples() : 0; }
    std::optional<Evaluation> measure(Set set, StopEvaluation const& stop,
                                      LendParameters const& lend) override;

  private:
    std::unique_ptr<BatchSource> load(StepBatches const& batches, int workers, int prefetch);
    void add_outputs(data::Batch& batch) const;
    data::Dataset const* dataset(Set set) const {
        auto const& work = parts_.work;
        return (set == Set::training     ? work.train
                : set == Set::validation ? work.validation
                                         : work.test)
            .get();
    }

    DataModuleParts parts_;
    data::TrainPlan plan_;
    std::int64_t max_steps_; ///< steps that privacy.epsilon allows; 0: any number
    data::Augmentation augmentation_;
    std::map<Set, task::Metrics> constants_; ///< of Workload::constant_answer, which do not change
};

} // namespace lockstep::train
