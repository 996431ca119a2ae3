#pragma once

#include "lockstep/config/deck.hpp"

#include <cstdint>

namespace lockstep::train {

/// What the loss is multiplied by, so that float16 gradients do not vanish. Dynamic: halved after a
/// step whose gradient is not finite, which is skipped, and doubled after 2,000 finite steps in a
/// row (Micikevicius et al., arXiv 1710.03740), by torch's own kernel. The same on all ranks, since
/// all ranks know the norm.
class LossScale {
  public:
    /// 1, and never anything else, unless precision.compute is fp16.
    explicit LossScale(config::Precision const& precision);

    double value() const noexcept { return value_; }
    /// Whether a step may be skipped: not after ten in a row at the smallest scale, or at a fixed
    /// one, since something else is wrong then.
    bool skips() const noexcept { return skips_ && in_vain_ < 10; }
    /// Updates the scale after a step, which was finite or has been skipped.
    void update(bool finite);

    std::int64_t growth() const noexcept { return growth_; }   ///< finite steps in a row
    std::int64_t skipped() const noexcept { return skipped_; } ///< steps, in all
    void restore(double value, std::int64_t growth, std::int64_t skipped);

  private:
    bool skips_;
    bool dynamic_;
    double value_;
    std::int64_t growth_ = 0;
    std::int64_t skipped_ = 0;
    int in_vain_ = 0; ///< steps in a row that no smaller scale would have saved
};

} // namespace lockstep::train
