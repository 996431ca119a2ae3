#include "federate/privacy_loss.hpp"

#include "federate/fourier.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <numbers>
#include <vector>

// What is computed is at least the true epsilon, since of each approximation either the loss can
// only become larger, or the probability that it becomes smaller is subtracted from delta:
//
// - One round's loss is cut to a range. That it is beyond, in any round, has a probability of at
//   most `share`.
// - It is rounded to a grid, and all of it shifted, so that its mean stays the same. The errors of
//   the rounds are then independent, of mean 0 and within a cell, so that their sum is above
//   `slack` with a probability of at most `share` (Hoeffding). The slack is added to epsilon.
// - The transform adds up the losses modulo a window. The sum is above the window with a
//   probability of at most `share` (Chernoff); losses that come into it from elsewhere add to
//   delta.
// - The transform's rounding errors are bounded, and added to delta; likewise those of a round's
//   probabilities and mean, which count for each round.
//
// The grid is tilted before it is transformed, multiplied by exp(tilt loss), and back afterwards:
// errors are then relative to the tail that delta is made of, not to 1, and delta may be tiny.

namespace lockstep::federate {

namespace {

enum class Neighbour { removed, added };

constexpr double parts_of_epsilon =
    128; ///< the slack is so small a part of epsilon, if the grid allows
constexpr double min_slack = 1e-5;
constexpr double parts_of_delta = 1024; ///< each of the three shares
constexpr double min_noise_of_grid = 1e-3;
constexpr double max_grid = 1 << 20;
constexpr double coarse_cells = 4096;
constexpr double min_tilt = 1e-4;
constexpr double max_tilt = 1e6;
constexpr double negligible = 1e-100;      ///< beside rounding errors; denormals would be slow
constexpr double rounding_of_mass = 1e-13; ///< relative, of a round's tilted probabilities
constexpr double rounding_of_mean = 2e-15; ///< of a round's mean loss, as a part of its range
constexpr double infinite_loss = std::numeric_limits<double>::infinity();

/// How closely epsilon is computed.
struct Precision {
    Precision(std::int64_t rounds_, double delta_)
        : rounds(static_cast<double>(rounds_)), delta(delta_), share(delta_ / parts_of_delta),
          certainty(-std::log(share)), reach(std::sqrt(2 * (certainty + std::log(rounds)))) {}

    double slack() const { return cell * std::sqrt(rounds / 2 * certainty); }
    double cell_of(double slack) const { return slack / std::sqrt(rounds / 2 * certainty); }

    double rounds;
    double delta;
    double share;
    double certainty; ///< -log share
    double reach;     ///< standard deviations of noise beyond which a loss is cut
    double cell = 0;  ///< width
};

/// The privacy loss log(P / Q) of an output x of one round, drawn from P: with the sample the
/// mixture of N(0, noise^2) and N(1, noise^2), without it N(0, noise^2). One of both is P.
class Loss {
  public:
    Loss(SampledGaussian const& round, Neighbour neighbour)
        : rate_(round.rate), noise_(round.noise), removed_(neighbour == Neighbour::removed) {}

    /// The privacy loss of a removed sample at x; it grows with x. That of an added one is -of(x).
    double of(double x) const {
        auto const ratio = (2 * x - 1) / (2 * noise_ * noise_);
        if (rate_ >= 1) {
            return ratio;
        }
        return ratio > 0 ? ratio + std::log(rate_ + (1 - rate_) * std::exp(-ratio))
                         : std::log1p(rate_ * std::expm1(ratio));
    }
    /// The probability that the loss is above `loss`.
    double above(double loss) const {
        if (!removed_) {
            return tail(-output(-loss));
        }
        auto const x = output(loss);
        return (1 - rate_) * tail(x) + rate_ * tail(x - 1);
    }
    double min(double reach) const {
        return removed_ ? of(-reach * noise_) : -of(1 + reach * noise_);
    }
    double max(double reach) const {
        return removed_ ? of(1 + reach * noise_) : -of(-reach * noise_);
    }
    double width(double reach) const { return max(reach) - min(reach); }
    /// The mean of the loss, cut to its range. The integrand is analytic up to pi noise^2 off the
    /// real line and vanishes at the ends, so that the trapezoidal rule is exact but for exp(-39).
    double mean(double reach) const {
        auto const step = std::min(noise_ / 8, noise_ * noise_ / 2);
        auto const first = -(reach + 3) * noise_;
        auto const points = std::llround((1 + 2 * (reach + 3) * noise_) / step);
        auto const lowest = min(reach);
        auto const highest = max(reach);
        double sum = 0;
        for (std::int64_t i = 0; i <= points; ++i) {
            auto const x = first + static_cast<double>(i) * step;
            auto const weight =
                removed_ ? (1 - rate_) * density(x) + rate_ * density(x - 1) : density(x);
            sum += weight * std::clamp(removed_ ? of(x) : -of(x), lowest, highest);
        }
        return sum * step;
    }

  private:
    double output(double loss) const {
        auto const relative =
            rate_ >= 1 ? loss
            : loss > 1 ? loss + std::log1p(-(1 - rate_) * std::exp(-loss)) - std::log(rate_)
                       : std::log1p(std::max(-1.0, std::expm1(loss) / rate_));
        return 0.5 + noise_ * noise_ * relative;
    }
    double tail(double x) const { return std::erfc(x / (std::numbers::sqrt2 * noise_)) / 2; }
    double density(double x) const {
        return std::exp(-x * x / (2 * noise_ * noise_)) /
               (noise_ * std::sqrt(2 * std::numbers::pi));
    }

    double rate_;
    double noise_;
    bool removed_;
};

/// Losses on a grid: value i is that of the loss (first + i) cell + shift.
struct Grid {
    std::int64_t first = 0;
    double shift = 0;
    std::vector<double> values;
};

Grid rounded(Loss const& loss, Precision const& precision) {
    auto const cell = precision.cell;
    Grid grid;
    grid.first = std::llround(loss.min(precision.reach) / cell);
    auto const last = std::llround(loss.max(precision.reach) / cell);
    double before = 1;
    for (auto i = grid.first; i <= last; ++i) {
        auto const after = i < last ? loss.above((static_cast<double>(i) + 0.5) * cell) : 0;
        grid.values.push_back(std::max(0.0, before - after));
        grid.shift -= grid.values.back() * static_cast<double>(i) * cell;
        before = after;
    }
    grid.shift += loss.mean(precision.reach);
    return grid;
}

double loss_at(Grid const& grid, std::size_t i, double cell) {
    return (static_cast<double>(grid.first) + static_cast<double>(i)) * cell + grid.shift;
}

/// Multiplies by exp(tilt loss) and divides by the sum, whose logarithm is the result.
double tilt_by(double tilt, Grid& grid, double cell) {
    double largest = -infinite_loss;
    for (std::size_t i = 0; i < grid.values.size(); ++i) {
        auto& value = grid.values[i];
        value = value > 0 ? std::log(value) + tilt * loss_at(grid, i, cell) : -infinite_loss;
        largest = std::max(largest, value);
    }
    double sum = 0;
    for (auto& value : grid.values) {
        value = std::exp(value - largest);
        sum += value;
    }
    for (auto& value : grid.values) {
        value /= sum;
    }
    return largest + std::log(sum);
}

double deviation(std::vector<double> const& values, double cell) {
    double mean = 0;
    double square = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto const at = static_cast<double>(i);
        mean += values[i] * at;
        square += values[i] * at * at;
    }
    return cell * std::sqrt(std::max(0.0, square - mean * mean));
}

struct Tilt {
    double tilt = 1;
    double epsilon = 0; ///< about; Chernoff's bound
    double window = 0;  ///< wide enough that little wraps around
};

/// The tilt with which Chernoff's bound of epsilon is least, by golden section on a coarse grid.
Tilt best_tilt(Loss const& loss, Precision precision) {
    precision.cell = loss.width(precision.reach) / coarse_cells;
    auto const grid = rounded(loss, precision);
    auto const at = [&](double logarithm) {
        auto tilted = grid;
        Tilt tilt{.tilt = std::exp(logarithm)};
        auto const scale = precision.rounds * tilt_by(tilt.tilt, tilted, precision.cell);
        tilt.epsilon = (scale - std::log(precision.delta)) / tilt.tilt;
        // From below comes at most exp(-tilt window), from above what is so far from the mean.
        tilt.window =
            std::max(2 * precision.certainty / tilt.tilt,
                     12 * deviation(tilted.values, precision.cell) * std::sqrt(precision.rounds));
        return tilt;
    };
    double low = std::log(min_tilt);
    double high = std::log(max_tilt);
    while (high - low > 0.05) {
        auto const left = high - (high - low) / std::numbers::phi;
        auto const right = low + (high - low) / std::numbers::phi;
        if (at(left).epsilon < at(right).epsilon) {
            high = right;
        } else {
            low = left;
        }
    }
    return at((low + high) / 2);
}

/// The distribution of the sum of all rounds' tilted losses, modulo the number of values.
struct Sums {
    std::vector<double> values;
    double rounding = 0; ///< error of each is at most this
};

Sums composed(Grid const& grid, double rounds, std::size_t size) {
    std::vector<std::complex<double>> values(size);
    auto const modulo = static_cast<std::int64_t>(size);
    for (std::size_t i = 0; i < grid.values.size(); ++i) {
        auto const place = (grid.first + static_cast<std::int64_t>(i)) % modulo;
        if (grid.values[i] > negligible) {
            values[static_cast<std::size_t>(place < 0 ? place + modulo : place)] += grid.values[i];
        }
    }
    fourier(values);
    // A power's derivative is `rounds` times the power below it.
    double derivatives = 0;
    for (std::size_t i = 0; i <= size / 2; ++i) {
        auto const length = std::abs(values[i]);
        auto const power = std::pow(length, rounds - 1);
        derivatives += 2 * power;
        // Conjugated, so that the same transform leads back; the values are real.
        values[i] = power * length > negligible
                        ? std::polar(power * length, -rounds * std::arg(values[i]))
                        : 0;
        values[(size - i) % size] = std::conj(values[i]);
    }
    fourier(values);
    auto const mean = 1 / static_cast<double>(size);
    Sums sums;
    sums.rounding = 8 * rounds * std::numeric_limits<double>::epsilon() *
                    std::log2(static_cast<double>(size)) * derivatives * mean;
    for (auto const& value : values) {
        sums.values.push_back(std::max(0.0, value.real() * mean));
    }
    return sums;
}

double epsilon_on_grid(Loss const& loss, Tilt const& how, Precision const& precision) {
    auto const tilt = how.tilt;
    auto grid = rounded(loss, precision);
    auto const rounds = precision.rounds;
    auto const cell = precision.cell;
    auto const scale = rounds * tilt_by(tilt, grid, cell);
    auto const shift = rounds * grid.shift;
    // Above `top` with a probability of at most exp(scale - tilt top).
    auto const top = (scale + precision.certainty) / tilt;
    auto const cells = std::min(how.window / cell + 2, max_grid);
    auto const size = std::bit_ceil(static_cast<std::size_t>(cells));
    auto const sums = composed(grid, rounds, size);
    // From the top: `delta` at epsilon = `at` is the sum of p (1 - exp(at - loss)) over losses
    // above it, and `rest` the sum of p exp(at - loss).
    auto const modulo = static_cast<std::int64_t>(size);
    auto const highest = static_cast<std::int64_t>(std::ceil((top - shift) / cell));
    auto const target = precision.delta * (1 - rounds * rounding_of_mass) - 3 * precision.share;
    double delta = 0;
    double rest = 0;
    double at = static_cast<double>(highest) * cell + shift;
    for (std::int64_t i = highest; i > highest - modulo; --i) {
        auto const here = static_cast<double>(i) * cell + shift;
        auto const place = static_cast<std::size_t>((i % modulo + modulo) % modulo);
        rest += (sums.values[place] + sums.rounding) * std::exp(scale - tilt * here);
        delta -= std::expm1(-cell) * rest;
        rest *= std::exp(-cell);
        if (!(delta <= target)) {
            break;
        }
        at = here - cell;
    }
    auto const rounding = rounds * rounding_of_mean * loss.width(precision.reach);
    return std::max(0.0, at) + precision.slack() + rounding;
}

} // namespace

double epsilon_of_losses(SampledGaussian const& round, std::int64_t rounds, double delta) {
    auto const renyi = renyi_bound(round, rounds, delta).epsilon;
    if (renyi == 0 || round.noise < min_noise_of_grid) {
        return renyi;
    }
    Precision precision(rounds, delta);
    Loss const removed(round, Neighbour::removed);
    Loss const added(round, Neighbour::added);
    auto const of_removed = best_tilt(removed, precision);
    auto const min_cell = std::max(removed.width(precision.reach), of_removed.window) / max_grid;
    // The slack is first a part of Chernoff's bound, which may be far above epsilon. On a coarse
    // grid that is no bound, and is not returned.
    auto about = std::min(renyi, of_removed.epsilon);
    auto epsilon = renyi;
    double slack = infinite_loss;
    // 1.5: a cell that was made for a slack may give one that is larger by a rounding error.
    while (slack > std::max(1.5 * min_slack, about / parts_of_epsilon) &&
           precision.cell != min_cell) {
        precision.cell = std::max(
            min_cell, precision.cell_of(std::max(min_slack, about / (1.5 * parts_of_epsilon))));
        slack = precision.slack();
        epsilon = std::min(epsilon, epsilon_on_grid(removed, of_removed, precision));
        about = std::min(about, epsilon);
    }
    auto const of_added = epsilon_on_grid(added, best_tilt(added, precision), precision);
    return std::min(renyi, std::max(epsilon, of_added));
}

} // namespace lockstep::federate
