#pragma once

#include "data/latest_orders.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep::data {

/// Draws a step's samples: each with the same probability, independently of all others and of
/// other steps (Poisson sampling).
class PoissonDraw {
  public:
    /// `key_of` gives each step a key of its own.
    PoissonDraw(std::int64_t samples, double rate,
                std::function<std::uint64_t(std::int64_t step)> key_of);

    /// The samples of a step, in ascending order; may be none. Any thread may call it.
    LatestOrders::Order draw(std::int64_t step) const;

  private:
    std::vector<std::int64_t> drawn_in(std::int64_t step) const;

    std::int64_t samples_;
    double rate_;
    std::function<std::uint64_t(std::int64_t)> key_of_;
    mutable LatestOrders latest_; ///< of steps, whose replicas and micro-batches share a draw
};

} // namespace lockstep::data
