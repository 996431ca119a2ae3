#pragma once

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

    /// In ascending order; may be none.
    std::vector<std::int64_t> draw(std::int64_t step) const;

  private:
    std::int64_t samples_;
    double rate_;
    std::function<std::uint64_t(std::int64_t)> key_of_;
};

} // namespace lockstep::data
