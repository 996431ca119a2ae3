// Tree-structured Parzen estimator (J. Bergstra et al., "Algorithms for hyper-parameter
// optimization", NIPS 2011) of all dimensions together: 10 random trials, then the best tenth
// against the others, 24 candidates.

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
        auto const min = 1 / static_cast<double>(count);
        auto const steps = static_cast<double>(count - recent);
        weights[at] = steps > 1 ? min + (1 - min) * static_cast<double>(at) / (steps - 1) : min;
    }
    return weights;
}

double normal_cdf(double x) {
    return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

/// A mixture over all dimensions at once: a component about each observation, and a wide one. In a
/// dimension, a component is a normal distribution cut off at 0 and 1, or prefers a choice; where
/// the dimension did not apply, it is uniform.
class Mixture {
  public:
    /// Shape  observed [n][dimensions]; NaN where a dimension did not apply
    Mixture(std::vector<Point> observed, std::vector<Dimension> const& dimensions)
        : dimensions_(dimensions), weights_(weights_of(observed.size())),
          means_(std::move(observed)) {
        means_.emplace_back(dimensions.size(), std::nan(""));
        weights_.push_back(1);
        for (auto const weight : weights_) {
            total_ += weight;
        }
        widths_.assign(means_.size(), std::vector<double>(dimensions.size(), 1));
        for (std::size_t at = 0; at < dimensions.size(); ++at) {
            set_widths(at);
        }
    }

    Point sample(std::uint64_t key) const {
        auto left = draw(key, {0}) * total_;
        std::size_t component = 0;
        while (component + 1 < weights_.size() && left >= weights_[component]) {
            left -= weights_[component++];
        }
        Point point;
        for (std::size_t at = 0; at < dimensions_.size(); ++at) {
            point.push_back(sample_of(component, at, key));
        }
        return point;
    }

    double log_density(Point const& point) const {
        double density = 0;
        for (std::size_t component = 0; component < means_.size(); ++component) {
            double product = weights_[component] / total_;
            for (std::size_t at = 0; at < dimensions_.size(); ++at) {
                product *= density_of(component, at, point[at]);
            }
            density += product;
        }
        return std::log(std::max(density, 1e-300));
    }

  private:
    /// As far as the farther neighbour; within a part that gets smaller with more observations.
    void set_widths(std::size_t dimension) {
        std::vector<std::size_t> order;
        for (std::size_t component = 0; component < means_.size(); ++component) {
            if (!std::isnan(means_[component][dimension])) {
                order.push_back(component);
            }
        }
        auto const mean = [&](std::size_t component) { return means_[component][dimension]; };
        std::ranges::stable_sort(order, {}, mean);
        auto const min = 1 / std::min(100.0, 1 + static_cast<double>(means_.size()));
        for (std::size_t at = 0; at < order.size(); ++at) {
            auto const own = mean(order[at]);
            bool const alone = order.size() == 1;
            double const below = at > 0 ? own - mean(order[at - 1]) : alone ? own : 0;
            double const above = at + 1 < order.size() ? mean(order[at + 1]) - own
                                 : alone               ? 1 - own
                                                       : 0;
            widths_[order[at]][dimension] = std::clamp(std::max(below, above), min, 1.0);
        }
    }

    bool is_choice(std::size_t dimension) const {
        return dimensions_[dimension].kind == Dimension::Kind::choice;
    }

    std::int64_t level_of(std::size_t dimension, double place) const {
        auto const count = dimensions_[dimension].levels();
        return std::min(static_cast<std::int64_t>(place * static_cast<double>(count)), count - 1);
    }

    double sample_of(std::size_t component, std::size_t dimension, std::uint64_t key) const {
        auto const mean = means_[component][dimension];
        auto const uniform = draw(key, {1, dimension});
        // Of a choice, half of what a component has is the observed one's, half is anyone's.
        if (std::isnan(mean) || (is_choice(dimension) && uniform < 0.5)) {
            return draw(key, {2, dimension});
        }
        for (std::uint64_t attempt = 0; !is_choice(dimension) && attempt < 1000; ++attempt) {
            auto const radius = std::sqrt(-2 * std::log1p(-draw(key, {3, dimension, attempt})));
            auto const angle = 2 * std::numbers::pi * draw(key, {4, dimension, attempt});
            auto const value = mean + widths_[component][dimension] * radius * std::cos(angle);
            if (value >= 0 && value <= 1) {
                return value;
            }
        }
        return mean;
    }

    double density_of(std::size_t component, std::size_t dimension, double x) const {
        auto const mean = means_[component][dimension];
        if (std::isnan(mean)) {
            return 1;
        }
        if (is_choice(dimension)) {
            auto const count = static_cast<double>(dimensions_[dimension].levels());
            return 0.5 + (level_of(dimension, x) == level_of(dimension, mean) ? 0.5 * count : 0);
        }
        auto const width = widths_[component][dimension];
        auto const z = (x - mean) / width;
        auto const inside = normal_cdf((1 - mean) / width) - normal_cdf(-mean / width);
        return std::exp(-0.5 * z * z) / (width * inside * std::sqrt(2 * std::numbers::pi));
    }

    std::vector<Dimension> const& dimensions_;
    std::vector<double> weights_;
    std::vector<Point> means_;
    std::vector<std::vector<double>> widths_;
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
        Mixture const below(observed(best), space_.dimensions());
        Mixture const above(observed(others), space_.dimensions());
        std::optional<Point> chosen;
        double highest = -HUGE_VAL;
        for (std::uint64_t n = 0; n < candidates || (!chosen && n < 100 * candidates); ++n) {
            auto point = below.sample(mixed(mixed(seed() ^ mixed(trial)) ^ n));
            auto const ratio = below.log_density(point) - above.log_density(point);
            if (ratio > highest && space_.allows(space_.values(point))) {
                highest = ratio;
                chosen = std::move(point);
            }
        }
        return chosen ? *chosen : space_.draw_point(seed(), trial);
    }

    std::vector<Point> observed(std::vector<std::size_t> const& trials) const {
        std::vector<Point> points;
        for (auto const trial : trials) {
            auto point = points_[trial];
            auto const values = space_.values(point);
            for (std::size_t at = 0; at < point.size(); ++at) {
                if (!values.contains(space_.dimensions()[at].key)) {
                    point[at] = std::nan("");
                }
            }
            points.push_back(std::move(point));
        }
        return points;
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
