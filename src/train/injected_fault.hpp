#pragma once

#include "arena/arena.hpp"
#include "base/inject.hpp"
#include "lockstep/nn/model.hpp"

#include <functional>
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

    /// Flips a bit of the first parameter, as faulty memory does, where that is requested: `whole`
    /// is called then. Where ranks of a host share the arena, it flips for all of them.
    void end_step(std::function<Arena const&()> const& whole) const;

  private:
    Damage damage_;
    std::optional<PoisonedGradient> poisoned_;
};

} // namespace lockstep::train
