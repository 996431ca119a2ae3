// Tree-structured Parzen estimator (J. Bergstra et al., "Algorithms for hyper-parameter
// optimization", NIPS 2011), with the choices that Optuna's paper and documentation give as its
// defaults: dimension by dimension, 10 random trials, the best tenth against the others, 24
// candidates.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "draw.hpp"
#include "strategies.hpp"

namespace lockstep::search {

namespace {

constexpr std::int64_t random_trials = 10;
constexpr std::size_t candidates = 24;
constexpr std::size_t max_good = 25;
constexpr std::size_t recent = 25; ///< that count fully, however many there are

/// Weights of observations, the oldest first: those of long ago count less.
std::vector<double> weights_of(std::size_t count) {
    std::vector<double> weights(count, 1);
    for (std::size_t at = 0; count > recent && at + recent < count; ++at) {
        auto const least = 1 / static_cast<double>(count);
        auto const steps = static_cast<double>(count - recent);
        weights[at] =
            steps > 1 ? least + (1 - least) * static_cast<double>(at) / (steps - 1) : least;
    }
    return weights;
}

double normal_cdf(double x) {
    return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

/// A mixture of normal distributions cut off at 0 and 1, one about each observation, and a wide
/// one about the middle.
class Mixture {
  public:
    explicit Mixture(std::vector<double> const& observed) : weights_(weights_of(observed.size())) {
        means_ = observed;
        means_.push_back(0.5);
        weights_.push_back(1);
        std::vector<std::size_t> order(means_.size());
        for (std::size_t at = 0; at < order.size(); ++at) {
            order[at] = at;
        }
        std::ranges::stable_sort(order, {}, [&](auto at) { return means_[at]; });
        widths_.resize(means_.size());
        auto const least = 1 / std::min(100.0, 1 + static_cast<double>(means_.size()));
        for (std::size_t at = 0; at < order.size(); ++at) {
            auto const own = means_[order[at]];
            double const below = at > 0 ? own - means_[order[at - 1]] : 0;
            double const above = at + 1 < order.size() ? means_[order[at + 1]] - own : 0;
            widths_[order[at]] = std::clamp(std::max(below, above), least, 1.0);
        }
        widths_.back() = 1;
        for (auto const weight : weights_) {
            total_ += weight;
        }
    }

    double sample(std::uint64_t seed, std::initializer_list<std::uint64_t> counters) const {
        std::uint64_t key = seed;
        for (auto const counter : counters) {
            key = mixed(key ^ counter);
        }
        auto left = draw(key, {0}) * total_;
        std::size_t at = 0;
        while (at + 1 < weights_.size() && left >= weights_[at]) {
            left -= weights_[at++];
        }
        for (std::uint64_t attempt = 1; attempt < 1000; ++attempt) {
            auto const radius = std::sqrt(-2 * std::log1p(-draw(key, {attempt, 1})));
            auto const angle = 2 * std::numbers::pi * draw(key, {attempt, 2});
            auto const value = means_[at] + widths_[at] * radius * std::cos(angle);
            if (value >= 0 && value <= 1) {
                return value;
            }
        }
        return means_[at];
    }

    double log_density(double x) const {
        double density = 0;
        for (std::size_t at = 0; at < means_.size(); ++at) {
            auto const z = (x - means_[at]) / widths_[at];
            auto const inside =
                normal_cdf((1 - means_[at]) / widths_[at]) - normal_cdf(-means_[at] / widths_[at]);
            density += weights_[at] / total_ * std::exp(-0.5 * z * z) / (widths_[at] * inside);
        }
        return std::log(std::max(density, 1e-300));
    }

  private:
    std::vector<double> means_;
    std::vector<double> widths_;
    std::vector<double> weights_;
    double total_ = 0;
};

class Tpe : public Strategy {
  public:
    Tpe(Settings const& settings, Space const& space) : settings_(settings), space_(space) {}

    std::optional<Job> ask() override {
        auto const first = round_ * settings_.batch;
        if (asked_ == settings_.trials || asked_ == first + settings_.batch) {
            return std::nullopt;
        }
        auto const trial = asked_++;
        auto point = first < random_trials
                         ? space_.draw_point(seed(), static_cast<std::uint64_t>(trial))
                         : suggestion(static_cast<std::uint64_t>(trial));
        points_.push_back(point);
        losses_.resize(points_.size());
        return Job{.trial = trial, .point = std::move(point)};
    }

    void tell(Result const& result) override {
        losses_[static_cast<std::size_t>(result.trial)] = result.losses.front();
        if (++told_ == (round_ + 1) * settings_.batch) {
            ++round_;
        }
    }

    bool is_finished() const override { return told_ == settings_.trials; }

  private:
    std::uint64_t seed() const { return static_cast<std::uint64_t>(settings_.seed); }

    /// From the results of whole rounds alone: trials of this round count as bad, so that the next
    /// one lies elsewhere.
    Point suggestion(std::uint64_t trial) const {
        auto const done = static_cast<std::size_t>(round_ * settings_.batch);
        std::vector<std::size_t> order(done);
        for (std::size_t at = 0; at < done; ++at) {
            order[at] = at;
        }
        std::ranges::stable_sort(order, {}, [&](auto at) { return losses_[at]; });
        auto const share = static_cast<std::size_t>(std::ceil(0.1 * static_cast<double>(done)));
        auto const good = std::min(share, max_good);
        std::vector<std::size_t> best(order.begin(),
                                      order.begin() + static_cast<std::ptrdiff_t>(good));
        std::vector<std::size_t> others(order.begin() + static_cast<std::ptrdiff_t>(good),
                                        order.end());
        for (auto at = done; at < points_.size(); ++at) {
            others.push_back(at);
        }
        std::ranges::sort(best);
        std::ranges::sort(others);
        for (std::uint64_t attempt = 0; attempt < 100; ++attempt) {
            Point point(space_.dimensions().size());
            for (std::size_t at = 0; at < point.size(); ++at) {
                std::uint64_t const key = mixed(mixed(seed() ^ trial) ^ (attempt * 1000 + at));
                point[at] = space_.dimensions()[at].kind == Dimension::Kind::choice
                                ? best_choice(at, best, others, key)
                                : best_place(at, best, others, key);
            }
            if (space_.allows(space_.values(point))) {
                return point;
            }
        }
        return space_.draw_point(seed(), trial);
    }

    std::vector<double> places(std::size_t dimension,
                               std::vector<std::size_t> const& trials) const {
        std::vector<double> places;
        auto const& key = space_.dimensions()[dimension].key;
        for (auto const trial : trials) {
            if (space_.values(points_[trial]).contains(key)) { // it applied there
                places.push_back(points_[trial][dimension]);
            }
        }
        return places;
    }

    double best_place(std::size_t dimension, std::vector<std::size_t> const& best,
                      std::vector<std::size_t> const& others, std::uint64_t key) const {
        Mixture const below(places(dimension, best));
        Mixture const above(places(dimension, others));
        double place = 0.5;
        double highest = -HUGE_VAL;
        for (std::size_t n = 0; n < candidates; ++n) {
            auto const candidate = below.sample(key, {n});
            auto const ratio = below.log_density(candidate) - above.log_density(candidate);
            if (ratio > highest) {
                highest = ratio;
                place = candidate;
            }
        }
        return place;
    }

    double best_choice(std::size_t dimension, std::vector<std::size_t> const& best,
                       std::vector<std::size_t> const& others, std::uint64_t key) const {
        auto const& own = space_.dimensions()[dimension];
        auto const shares = [&](std::vector<std::size_t> const& trials) {
            auto const count = static_cast<std::size_t>(own.levels());
            std::vector<double> weights(count, 1 / static_cast<double>(count));
            auto const seen = places(dimension, trials);
            auto const of_trials = weights_of(seen.size());
            double total = 1;
            for (std::size_t at = 0; at < seen.size(); ++at) {
                auto const level = static_cast<std::size_t>(seen[at] * static_cast<double>(count));
                weights[std::min(level, count - 1)] += of_trials[at];
                total += of_trials[at];
            }
            for (auto& weight : weights) {
                weight /= total;
            }
            return weights;
        };
        auto const below = shares(best);
        auto const above = shares(others);
        std::size_t chosen = 0;
        double highest = -1;
        for (std::size_t n = 0; n < candidates; ++n) {
            auto left = draw(key, {n});
            std::size_t at = 0;
            while (at + 1 < below.size() && left >= below[at]) {
                left -= below[at++];
            }
            if (below[at] / above[at] > highest) {
                highest = below[at] / above[at];
                chosen = at;
            }
        }
        return own.unit_of_level(static_cast<std::int64_t>(chosen));
    }

    Settings settings_;
    Space const& space_;
    std::vector<Point> points_;  ///< by trial
    std::vector<double> losses_; ///< by trial
    std::int64_t round_ = 0;     ///< of `batch` trials each
    std::int64_t asked_ = 0;
    std::int64_t told_ = 0;
};

} // namespace

std::unique_ptr<Strategy> make_tpe(Settings const& settings, Space const& space) {
    return std::make_unique<Tpe>(settings, space);
}

} // namespace lockstep::search
