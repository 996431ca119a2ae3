#include "weighted_order.hpp"

#include "base/random.hpp"
#include "data/latest_orders.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace lockstep::data {

namespace {

std::uint64_t random_bits(std::uint64_t key, std::int64_t counter) {
    return mixed(key ^ mixed(static_cast<std::uint64_t>(counter)));
}

/// Looks numbers of [0, sum) up in the weights' running sums.
class Draws : public WeightedOrder {
  public:
    explicit Draws(std::vector<double> const& weights) : sums_(weights.size()) {
        std::partial_sum(weights.begin(), weights.end(), sums_.begin());
        if (!std::isfinite(sums_.back())) {
            throw Error(ExitCode::data, {"the samples' weights are too large",
                                         "the sum of the weights is too large for a 64-bit float",
                                         "Divide all weights by the largest"});
        }
    }

    std::int64_t positions() const noexcept override {
        return static_cast<std::int64_t>(sums_.size());
    }

    void draw(std::uint64_t key, Span positions, std::span<std::int64_t> samples) const override {
        for (std::size_t i = 0; i < samples.size(); ++i) {
            auto const bits =
                random_bits(key, positions.first + static_cast<std::int64_t>(i)) >> 11;
            // Below the sum after rounding too, since it is at most (1 - 2^-53) times the sum.
            auto const at = static_cast<double>(bits) * 0x1p-53 * sums_.back();
            // The first sum above it: never that of a weight of 0, which is the one before.
            samples[i] = std::upper_bound(sums_.begin(), sums_.end(), at) - sums_.begin();
        }
    }

  private:
    std::vector<double> sums_;
};

/// The natural logarithm in plain arithmetic: that of the C library takes other instructions on
/// other processors, and hosts must agree on every bit.
///
/// `value` is above 0.
double logarithm(double value) {
    int exponent = 0;
    double fraction = std::frexp(value, &exponent); // in [1/2, 1)
    if (fraction < 0.5 * std::numbers::sqrt2) {
        fraction *= 2;
        --exponent;
    }
    // ln f = 2 artanh s, a series in s^2 < 0.03.
    double const s = (fraction - 1) / (fraction + 1);
    double sum = 0;
    for (int power = 21; power > 0; power -= 2) {
        sum = sum * s * s + 1.0 / power;
    }
    return exponent * std::numbers::ln2 + 2 * s * sum;
}

/// Samples in the order in which exponential clocks of rate w_i ring (Efraimidis, Spirakis,
/// "Weighted random sampling with a reservoir", Information Processing Letters 97, 2006).
class Races : public WeightedOrder {
  public:
    explicit Races(std::shared_ptr<std::vector<double> const> weights)
        : weights_(std::move(weights)),
          positions_(std::count_if(weights_->begin(), weights_->end(),
                                   [](double weight) { return weight > 0; })) {}

    std::int64_t positions() const noexcept override { return positions_; }

    void draw(std::uint64_t key, Span positions, std::span<std::int64_t> samples) const override {
        auto const found = orders_.of(key, [&] { return order(key); });
        std::copy_n(found->begin() + positions.first, positions.count, samples.begin());
    }

  private:
    std::vector<std::int64_t> order(std::uint64_t key) const {
        std::vector<std::pair<double, std::int64_t>> rings;
        rings.reserve(static_cast<std::size_t>(positions_));
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(weights_->size()); ++i) {
            if (auto const weight = (*weights_)[static_cast<std::size_t>(i)]; weight > 0) {
                auto const uniform =
                    (static_cast<double>(random_bits(key, i) >> 12) + 0.5) * 0x1p-52;
                rings.emplace_back(-logarithm(uniform) / weight, i);
            }
        }
        std::sort(rings.begin(), rings.end());
        std::vector<std::int64_t> samples(rings.size());
        std::transform(rings.begin(), rings.end(), samples.begin(),
                       [](auto const& ring) { return ring.second; });
        return samples;
    }

    std::shared_ptr<std::vector<double> const> weights_;
    std::int64_t positions_;
    mutable LatestOrders orders_;
};

} // namespace

std::shared_ptr<WeightedOrder const>
weighted_order(std::shared_ptr<std::vector<double> const> const& weights, bool replacement) {
    if (replacement) {
        return std::make_shared<Draws>(*weights);
    }
    return std::make_shared<Races>(weights);
}

} // namespace lockstep::data
