#pragma once

#include "lockstep/config/deck.hpp"

#include <cstdint>

namespace lockstep::train {

/// When weights are removed, and how many: at once, or by the cubic schedule of Zhu and Gupta
/// (arXiv 1710.01878), which removes most of them early.
class PruneSchedule {
  public:
    /// Throws  Error 64 for prune.score = taylor before there was a step
    explicit PruneSchedule(config::Prune const& prune);

    /// Whether weights are removed after `steps` steps.
    bool is_due(std::int64_t steps) const;
    /// The share of all removable weights that is gone after that removal, earlier ones included;
    /// for channels, the share of multiply-adds.
    double share_at(std::int64_t steps) const;
    std::int64_t last() const noexcept { return last_; } ///< steps done before the last removal

    /// Throws  Error 64 when a run of `total_steps` steps ends before the last removal has an
    ///         effect
    void require_within(std::int64_t total_steps) const;

  private:
    std::int64_t begin_;
    std::int64_t last_;
    std::int64_t every_;
    double share_;
};

} // namespace lockstep::train
