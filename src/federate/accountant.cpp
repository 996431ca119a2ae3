#include "federate/accountant.hpp"

#include "federate/privacy_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace lockstep::federate {

namespace {

constexpr std::int64_t max_counted = (std::int64_t{1} << 40) - 1;
constexpr double infinite = std::numeric_limits<double>::infinity();

double log_sum(double a, double b) {
    auto const larger = std::max(a, b);
    return larger == -infinite ? -infinite : larger + std::log1p(std::exp(-std::abs(a - b)));
}

/// The logarithm of the absolute value of a binomial coefficient, also where n is not whole.
double log_binomial(double n, double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

/// log erfc; of large numbers, whose erfc is below the smallest double, by its asymptotic series.
double log_erfc(double x) {
    if (x < 20) {
        return std::log(std::erfc(x));
    }
    double term = 1;
    double series = 1;
    for (int k = 1; k < 12; ++k) {
        term *= -(2 * k - 1) / (2 * x * x);
        series += term;
    }
    return -x * x - std::log(x * std::sqrt(std::numbers::pi)) + std::log(series);
}

/// log A of a whole order: the binomial sum.
double log_moment_whole(SampledGaussian const& round, int order) {
    double total = -infinite;
    for (int k = 0; k <= order; ++k) {
        total =
            log_sum(total, log_binomial(order, k) + k * std::log(round.rate) +
                               (order - k) * std::log1p(-round.rate) +
                               (static_cast<double>(k) * k - k) / (2 * round.noise * round.noise));
    }
    return total;
}

/// log A of any other order: two infinite series, of the halves left and right of where both
/// densities are alike.
double log_moment_between(SampledGaussian const& round, double order) {
    auto const variance = round.noise * round.noise;
    auto const width = std::numbers::sqrt2 * round.noise;
    auto const middle = variance * std::log(1 / round.rate - 1) + 0.5;
    auto const log_rate = std::log(round.rate);
    auto const log_rest = std::log1p(-round.rate);
    double left = -infinite;
    double right = -infinite;
    double last_left = -infinite;
    double last_right = -infinite;
    constexpr int max_terms = 1000;
    for (int k = 0; k < max_terms; ++k) {
        auto const j = order - k;
        auto const binomial = log_binomial(order, k) - std::numbers::ln2;
        auto const of_left = binomial + k * log_rate + j * log_rest +
                             (static_cast<double>(k) * k - k) / (2 * variance) +
                             log_erfc((k - middle) / width);
        auto const of_right = binomial + j * log_rate + k * log_rest +
                              (j * j - j) / (2 * variance) + log_erfc((middle - j) / width);
        left = log_sum(left, of_left);
        right = log_sum(right, of_right);
        auto const total = log_sum(left, right);
        if (of_left < last_left && of_right < last_right &&
            std::max(of_left, of_right) < total - 30) {
            return total;
        }
        last_left = of_left;
        last_right = of_right;
    }
    return infinite;
}

std::vector<double> orders() {
    std::vector<double> all;
    for (int tenth = 1; tenth < 100; ++tenth) {
        all.push_back(1 + tenth / 10.0);
    }
    for (int whole = 11; whole < 64; ++whole) {
        all.push_back(whole);
    }
    all.insert(all.end(), {128, 256, 512, 1024});
    return all;
}

double epsilon_at(double divergence, double order, double delta) {
    if (delta * delta + std::expm1(-divergence) > 0) {
        return 0; // delta is at most the root of 1 - exp(-KL)
    }
    return divergence + std::log1p(-1 / order) - std::log(delta * order) / (order - 1);
}

} // namespace

double renyi_divergence(SampledGaussian const& round, double order) {
    if (round.noise <= 0) {
        return infinite;
    }
    if (round.rate >= 1) {
        return order / (2 * round.noise * round.noise);
    }
    bool const whole = order == std::floor(order);
    auto const moment = std::max(0.0, whole ? log_moment_whole(round, static_cast<int>(order))
                                            : log_moment_between(round, order));
    // Its rounding errors, which may be larger than itself, count once for each of many rounds.
    auto const rounding = 16 * std::numeric_limits<double>::epsilon() * (1 + moment);
    return (moment + rounding) / (order - 1);
}

RenyiBound renyi_bound(SampledGaussian const& round, std::int64_t rounds, double delta) {
    RenyiBound smallest{.epsilon = infinite};
    for (auto const order : orders()) {
        auto const divergence = static_cast<double>(rounds) * renyi_divergence(round, order);
        auto const epsilon = epsilon_at(divergence, order, delta);
        if (epsilon < smallest.epsilon) {
            smallest = {.epsilon = std::max(0.0, epsilon), .order = order};
        }
    }
    return smallest;
}

double epsilon_of(SampledGaussian const& round, std::int64_t rounds, double delta,
                  std::string const& accountant) {
    if (rounds == 0) {
        return 0;
    }
    return accountant == "prv" ? epsilon_of_losses(round, rounds, delta)
                               : renyi_bound(round, rounds, delta).epsilon;
}

namespace {

std::int64_t max_rounds_of_renyi(SampledGaussian const& round, double epsilon, double delta) {
    std::int64_t within = 0;
    for (std::int64_t more = std::int64_t{1} << 39; more > 0; more /= 2) {
        if (renyi_bound(round, within + more, delta).epsilon <= epsilon) {
            within += more;
        }
    }
    return within;
}

} // namespace

std::int64_t max_rounds(SampledGaussian const& round, double epsilon, double delta,
                        std::string const& accountant) {
    auto within = max_rounds_of_renyi(round, epsilon, delta);
    if (accountant != "prv" || within == max_counted) {
        return within;
    }
    // Each question takes long, so few are asked. Epsilon grows at least as the root of rounds, as
    // far as these go, so that the square of what is left leads to too many; from then on the line
    // between enough and too many is followed.
    auto const after = [&](std::int64_t rounds) {
        return epsilon_of(round, rounds, delta, accountant);
    };
    auto spent = after(within);
    auto beyond = within;
    auto too_much = spent;
    while (too_much <= epsilon) {
        if (beyond == max_counted) {
            return max_counted;
        }
        within = beyond;
        spent = too_much;
        auto const ratio = spent > 0 ? std::min(epsilon / spent, 4.0) : 4.0;
        auto const more = static_cast<std::int64_t>(static_cast<double>(within) * ratio * ratio);
        beyond = std::min(more + 1, max_counted);
        too_much = after(beyond);
    }
    // 30 questions are more than any known case takes; fewer rounds than allowed remain a bound.
    bool enough = true; // the last answer: the next question is asked from its other side
    for (int asked = 0; asked < 30 && beyond - within > 1 + within / 1024; ++asked) {
        auto const share = (epsilon - spent) / (too_much - spent);
        auto const aside = within / 2048 + 1;
        auto const ahead = std::llround(share * static_cast<double>(beyond - within));
        auto const rounds =
            within + std::clamp<std::int64_t>(enough ? ahead + aside : ahead - aside, 1,
                                              beyond - within - 1);
        auto const here = after(rounds);
        enough = here <= epsilon;
        (enough ? within : beyond) = rounds;
        (enough ? spent : too_much) = here;
    }
    return within;
}

} // namespace lockstep::federate
