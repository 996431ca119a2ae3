#pragma once

#include "batches/workload.hpp"
#include "model_files/channel_pruning.hpp"
#include "step/engine.hpp"

#include <memory>
#include <optional>
#include <string>

#include "run_facts.hpp"

namespace lockstep::train {

/// The engine of a run. Where the run removes channels, its model becomes smaller, and with it
/// comes another engine: nobody keeps a reference to what `->` leads to.
class RunEngine {
  public:
    /// What it is given outlives it. `channels`: none are removed; `shapes`: of the model's tensors
    /// where it has fewer channels than the deck's, else empty.
    ///
    /// Collective  over the world
    /// Throws      AgreedError as EngineParts::open, or for a correction that cannot be read
    RunEngine(RunFacts const& facts, Workload& work, std::optional<ChannelPruning> channels,
              std::string shapes);

    Engine* operator->() const noexcept { return engine_.get(); }
    Engine& operator*() const noexcept { return *engine_; }

    /// As it was given, or as it is now.
    std::string const& shapes() const noexcept { return shapes_; }
    /// Whether channels are to be removed after `steps` steps.
    bool removes_channels(std::int64_t steps) const {
        return channels_ && channels_->schedule().is_due(steps);
    }
    /// Removes them: from then on, the model and the engine are smaller.
    ///
    /// Collective  over the world
    /// Throws      AgreedError 64 when prune.target cannot be met
    /// Returns     what was removed, for people; empty: nothing
    std::string remove_channels(std::int64_t steps);

  private:
    void make();

    RunFacts const& facts_;
    Workload& work_;
    std::optional<ChannelPruning> channels_;
    std::string shapes_;
    std::unique_ptr<Engine> engine_;
};

} // namespace lockstep::train
