// NSGA-II (K. Deb et al., IEEE Trans. Evol. Comput. 6, 2002): simulated binary crossover and
// polynomial mutation on [0, 1]; choices are crossed and drawn uniformly.

#include "search/pareto.hpp"

#include <algorithm>
#include <cmath>

#include "draw.hpp"
#include "strategies.hpp"

namespace lockstep::search {

namespace {

class Nsga2 : public Strategy {
  public:
    Nsga2(Settings const& settings, Space const& space) : settings_(settings), space_(space) {}

    std::optional<Job> ask() override {
        auto const first = generation_ * settings_.population;
        bool const all_asked = asked_ == settings_.trials || asked_ == first + settings_.population;
        if (all_asked) {
            return std::nullopt;
        }
        auto const trial = asked_++;
        auto point = generation_ == 0 ? space_.draw_point(seed(), static_cast<std::uint64_t>(trial))
                                      : child(static_cast<std::uint64_t>(trial));
        points_.push_back(point);
        losses_.resize(points_.size());
        return Job{.trial = trial, .point = std::move(point)};
    }

    void tell(Result const& result) override {
        losses_[static_cast<std::size_t>(result.trial)] = result.losses;
        ++told_;
        if (told_ == (generation_ + 1) * settings_.population && told_ < settings_.trials) {
            select();
            ++generation_;
        }
    }

    bool is_finished() const override { return told_ == settings_.trials; }

  private:
    static constexpr double crossover_share = 0.9;
    static constexpr double crossover_index = 2; ///< eta of the crossover: how near the parents
    static constexpr double mutation_index = 20; ///< eta of the mutation

    std::uint64_t seed() const { return static_cast<std::uint64_t>(settings_.seed); }

    /// The best of the parents before and their children: the next parents, with their ranks.
    void select() {
        std::vector<std::size_t> pool;
        for (auto const& parent : parents_) {
            pool.push_back(parent.trial);
        }
        for (auto trial = generation_ * settings_.population; trial < told_; ++trial) {
            pool.push_back(static_cast<std::size_t>(trial));
        }
        std::vector<std::vector<double>> losses;
        for (auto const trial : pool) {
            losses.push_back(losses_[trial]);
        }
        parents_.clear();
        auto const fronts = fronts_of(losses);
        for (std::size_t rank = 0; rank < fronts.size(); ++rank) {
            auto const distances = crowding(losses, fronts[rank]);
            std::vector<std::size_t> order(fronts[rank].size());
            for (std::size_t at = 0; at < order.size(); ++at) {
                order[at] = at;
            }
            std::ranges::stable_sort(order,
                                     [&](auto a, auto b) { return distances[a] > distances[b]; });
            for (auto const at : order) {
                if (std::cmp_less(parents_.size(), settings_.population)) {
                    parents_.push_back({pool[fronts[rank][at]], rank, distances[at]});
                }
            }
        }
    }

    Point const& winner(std::uint64_t trial, std::uint64_t attempt, std::uint64_t which) const {
        auto const pick = [&](std::uint64_t n) -> auto const& {
            auto const at = draw(seed(), {trial, attempt, 1, which, n});
            return parents_[static_cast<std::size_t>(at * static_cast<double>(parents_.size()))];
        };
        auto const& a = pick(0);
        auto const& b = pick(1);
        bool const first = a.rank < b.rank || (a.rank == b.rank && a.distance >= b.distance);
        return points_[(first ? a : b).trial];
    }

    Point child(std::uint64_t trial) const {
        for (std::uint64_t attempt = 0; attempt < 100; ++attempt) {
            auto point = crossed(trial, attempt);
            if (space_.allows(space_.values(point))) {
                return point;
            }
        }
        return space_.draw_point(seed(), trial);
    }

    Point crossed(std::uint64_t trial, std::uint64_t attempt) const {
        auto const& mother = winner(trial, attempt, 0);
        auto const& father = winner(trial, attempt, 1);
        auto const random = [&](std::uint64_t what, std::uint64_t at) {
            return draw(seed(), {trial, attempt, 2 + what, at});
        };
        Point point = mother;
        bool const crosses = random(0, 0) < crossover_share;
        for (std::size_t at = 0; at < point.size(); ++at) {
            bool const chosen = space_.dimensions()[at].kind == Dimension::Kind::choice;
            if (crosses) { // near either of them, or just as one of them
                bool const as_mother = random(5, at) < 0.5;
                auto const near = as_mother ? mother[at] : father[at];
                auto const far = as_mother ? father[at] : mother[at];
                bool const between_them = !chosen && random(1, at) < 0.5;
                point[at] = between_them ? between(near, far, random(2, at)) : near;
            }
            if (random(3, at) * static_cast<double>(point.size()) < 1) {
                point[at] = chosen ? random(4, at) : mutated(point[at], random(4, at));
            }
        }
        return point;
    }

    static double between(double a, double b, double u) {
        auto const power = 1 / (crossover_index + 1);
        auto const spread = u < 0.5 ? std::pow(2 * u, power) : std::pow(1 / (2 * (1 - u)), power);
        return std::clamp(((1 + spread) * a + (1 - spread) * b) / 2, 0.0, 1.0);
    }

    static double mutated(double x, double u) {
        auto const power = mutation_index + 1;
        auto const near = [&](double distance, double share) {
            return std::pow(share + (1 - share) * std::pow(1 - distance, power), 1 / power);
        };
        return std::clamp(u < 0.5 ? x + near(x, 2 * u) - 1 : x + 1 - near(1 - x, 2 * (1 - u)), 0.0,
                          1.0);
    }

    struct Parent {
        std::size_t trial;
        std::size_t rank;
        double distance;
    };

    Settings settings_;
    Space const& space_;
    std::vector<Point> points_;               ///< by trial
    std::vector<std::vector<double>> losses_; ///< by trial
    std::vector<Parent> parents_;
    std::int64_t generation_ = 0;
    std::int64_t asked_ = 0;
    std::int64_t told_ = 0;
};

} // namespace

std::unique_ptr<Strategy> make_nsga2(Settings const& settings, Space const& space) {
    return std::make_unique<Nsga2>(settings, space);
}

} // namespace lockstep::search
