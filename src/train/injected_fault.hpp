#pragma once

#include "arena/arena.hpp"
#include "base/inject.hpp"
#include "lockstep/nn/model.hpp"
#include "step/batch_source.hpp"
#include "step/compute_check.hpp"

#include <functional>
#include <memory>
#include <optional>

#include "poisoned_gradient.hpp"

namespace lockstep::train {

/// What LOCKSTEP_INJECT asks this rank to do wrong in one step.
class InjectedFault {
  public:
    /// Does what is requested at the beginning of the step (see inject_fault). `model`: the one
    /// that this rank steps with.
    ///
    /// Throws  Error as inject_fault does
    InjectedFault(int rank, std::int64_t step, nn::Model const& model);

    /// What this rank reads in place of these batches, or of those of a check.
    BatchSource& read(BatchSource& right);
    std::optional<ComputeCheck::Due> read(std::optional<ComputeCheck::Due> right) const;

    /// Flips a bit of the first parameter, as faulty memory does, where that is requested: `whole`
    /// is called then. Where ranks of a host share the arena, it flips for all of them.
    void end_step(std::function<Arena const&()> const& whole) const;

  private:
    Damage damage_;
    std::optional<PoisonedGradient> poisoned_;
    std::unique_ptr<BatchSource> wrong_;
};

} // namespace lockstep::train
