#pragma once

#include "data/span.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::data {

/// The order of an epoch whose samples are drawn by weight: a function of only the weights and a
/// key, at any position.
class WeightedOrder {
  public:
    virtual ~WeightedOrder() = default;

    /// The number of positions of an epoch.
    virtual std::int64_t positions() const noexcept = 0;

    /// The samples at these positions of the epoch with this key; from any thread.
    ///
    /// Shape  samples: positions.count
    virtual void draw(std::uint64_t key, Span positions, std::span<std::int64_t> samples) const = 0;
};

/// With replacement every position is a draw of its own, sample i with probability w_i / sum w, and
/// an epoch has as many as there are samples: 8 bytes per sample besides the weights. Without,
/// every sample of weight above 0 occurs once per epoch, the next one always with probability w_i /
/// the sum of those that are left: 8 bytes per sample for each of two epochs, and 16 more while an
/// epoch's order is made.
///
/// `weights` are finite, at least 0 and not all 0.
///
/// Throws  Error 65 where they add up to more than a double holds
std::shared_ptr<WeightedOrder const>
weighted_order(std::shared_ptr<std::vector<double> const> const& weights, bool replacement);

} // namespace lockstep::data
