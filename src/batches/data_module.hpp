#pragma once

#include "batches/evaluate.hpp"
#include "lockstep/task/task.hpp"
#include "step/batch_source.hpp"
#include "step/replica_arrays.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "first_step.hpp"

namespace lockstep::train {

/// What a run learns from, step by step, and what it is measured by: data sets, or episodes that a
/// policy plays. An epoch is a pass over a data set, or one iteration: episodes, and all that is
/// learnt from them.
class DataModule {
  public:
    virtual ~DataModule() = default;

    virtual std::int64_t steps_per_epoch() const = 0;
    virtual std::int64_t samples_per_epoch() const = 0; ///< learnt in an epoch, by all replicas
    virtual std::int64_t samples_in_step(std::int64_t in_epoch) const = 0; ///< by all replicas
    virtual int micro_batches(std::int64_t in_epoch) const = 0;
    /// The most steps that the run can take, whatever the deck says; 0: no limit.
    virtual std::int64_t max_steps() const { return 0; }
    /// Whether there is nothing more to learn from after `step` steps, the same on all ranks.
    virtual bool is_exhausted(std::int64_t) const { return false; }
    /// A hash of the data; a run must resume with the same.
    virtual std::uint64_t fingerprint() const = 0;

    /// The batches of all steps from `first_step` up to `total_steps`.
    virtual std::unique_ptr<BatchSource> batches(std::int64_t first_step,
                                                 std::int64_t total_steps) = 0;
    /// The batches of one replica, of any rank, in one step; null where only its own rank has them.
    virtual std::unique_ptr<BatchSource> batches_of(std::int64_t /*step*/, int /*replica*/) {
        return nullptr;
    }
    /// Whether `batches_of` has any, the same on all ranks.
    virtual bool has_batches_of_others() const { return false; }
    /// Called before each step.
    ///
    /// Collective  over the world
    virtual void prepare(std::int64_t) {}
    /// Looks at this rank's samples of a step whose loss was not finite.
    ///
    /// Throws   Error 65 that names the first of them that is not finite itself
    /// Returns  their largest values; 0 where there are no samples
    virtual Magnitudes require_finite(std::int64_t /*step*/) const { return {}; }
    /// The samples of each of this rank's batches of a step, in the order of `batches`; empty where
    /// no samples are stored.
    virtual std::vector<std::vector<std::int64_t>> samples_of(std::int64_t /*step*/) const {
        return {};
    }
    /// More figures of an epoch that has ended, besides its losses; the same on all ranks.
    virtual std::map<std::string, double> epoch_figures() const { return {}; }

    enum class Set { training, validation, test };
    virtual bool has(Set set) const = 0;
    /// The number of samples of a set. Where they are played: for `training`, transitions of an
    /// iteration; for the others, episodes.
    virtual std::int64_t samples(Set set) const = 0;
    /// Measures the model as it is; `lend` may be null.
    ///
    /// Collective  over the world
    /// Returns     nothing when `stop`, which is collective, ended it early
    virtual std::optional<Evaluation> measure(Set set, StopEvaluation const& stop,
                                              LendParameters const& lend) = 0;

    /// Each replica's own state; empty where the step's number determines it.
    virtual std::vector<ReplicaArray> state() { return {}; }
    /// Called after `state` has been filled from the checkpoint of a step.
    ///
    /// Collective  over the world
    virtual void restored(std::int64_t) {}
};

} // namespace lockstep::train
