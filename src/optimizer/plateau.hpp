#pragma once

#include "lockstep/config/deck.hpp"
#include "optimizer/improvement.hpp"

#include <cstdint>

namespace lockstep::train {

/// What a plateau schedule has seen so far.
struct PlateauState {
    Improvement metric{};
    std::int64_t cooldown = 0;   ///< measurements that do not count any more
    std::int64_t reductions = 0; ///< of the learning rate
};

/// When a plateau schedule reduces the learning rate: as torch's ReduceLROnPlateau with a relative
/// threshold, which is here relative to the best value's magnitude. (In torch, where values are
/// negative, one that is a little worse is an improvement.)
class Plateau {
  public:
    Plateau(config::Schedule const& schedule, bool more_is_better)
        : patience_(schedule.patience), cooldown_(schedule.cooldown),
          threshold_(schedule.threshold), more_is_better_(more_is_better) {}

    /// Takes in a measured value. Returns whether it reduces the rate.
    bool take(PlateauState& state, double value) const;

  private:
    std::int64_t patience_;
    std::int64_t cooldown_;
    double threshold_;
    bool more_is_better_;
};

} // namespace lockstep::train
