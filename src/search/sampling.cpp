// Strategies that do not look at results: grid, random and Sobol's sequence.

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "search/sobol.hpp"

#include <cmath>
#include <set>
#include <utility>

#include "draw.hpp"
#include "strategies.hpp"

namespace lockstep::search {

namespace {

constexpr std::int64_t max_of_grid = 100'000;

/// Trials whose points are known from the beginning.
class Listed : public Strategy {
  public:
    explicit Listed(std::vector<Point> points) : points_(std::move(points)) {}

    std::optional<Job> ask() override {
        if (asked_ == points_.size()) {
            return std::nullopt;
        }
        auto const trial = asked_++;
        return Job{.trial = static_cast<std::int64_t>(trial), .point = points_[trial]};
    }
    void tell(Result const&) override { ++told_; }
    bool is_finished() const override { return told_ == points_.size(); }

  private:
    std::vector<Point> points_;
    std::size_t asked_ = 0;
    std::size_t told_ = 0;
};

/// The places of a dimension that a grid visits.
std::vector<double> grid_of(Dimension const& dimension, std::int64_t points) {
    std::vector<double> places;
    auto const levels = dimension.levels();
    bool const all = levels > 0 && (dimension.kind != Dimension::Kind::integer || levels <= points);
    for (std::int64_t at = 0; at < (all ? levels : points); ++at) {
        places.push_back(all           ? dimension.unit_of_level(at)
                         : points == 1 ? 0.5
                                       : static_cast<double>(at) / static_cast<double>(points - 1));
    }
    return places;
}

} // namespace

std::unique_ptr<Strategy> make_grid(Settings const& settings, Space const& space) {
    std::vector<std::vector<double>> places;
    std::int64_t product = 1;
    for (auto const& dimension : space.dimensions()) {
        places.push_back(grid_of(dimension, settings.grid_points));
        product *= static_cast<std::int64_t>(places.back().size());
        if (product > max_of_grid) {
            throw Error(ExitCode::usage,
                        {"search.strategy = grid",
                         concat("the grid has more than ", count_text(max_of_grid), " points"),
                         "Lower search.grid-points, or choose another strategy"});
        }
    }
    std::vector<Point> points;
    std::set<Values> seen; // points differ in dimensions that do not apply, too
    for (std::int64_t index = 0; index < product; ++index) {
        Point point(places.size());
        auto rest = index;
        for (auto at = places.size(); at-- > 0;) {
            auto const size = static_cast<std::int64_t>(places[at].size());
            point[at] = places[at][static_cast<std::size_t>(rest % size)];
            rest /= size;
        }
        auto values = space.values(point);
        if (space.allows(values) && seen.insert(std::move(values)).second) {
            points.push_back(std::move(point));
        }
    }
    if (points.empty()) {
        throw Error(ExitCode::usage, {"search.constraints are too strict",
                                      "no point of the grid meets all constraints",
                                      "Loosen the constraints, or raise search.grid-points"});
    }
    return std::make_unique<Listed>(std::move(points));
}

std::unique_ptr<Strategy> make_random(Settings const& settings, Space const& space) {
    std::vector<Point> points;
    for (std::int64_t trial = 0; trial < settings.trials; ++trial) {
        points.push_back(space.draw_point(static_cast<std::uint64_t>(settings.seed),
                                          static_cast<std::uint64_t>(trial)));
    }
    return std::make_unique<Listed>(std::move(points));
}

std::unique_ptr<Strategy> make_sobol(Settings const& settings, Space const& space) {
    auto const dimensions = space.dimensions().size();
    if (dimensions > sobol_dimensions) {
        throw Error(ExitCode::usage,
                    {"search.strategy = sobol",
                     concat("[space] has ", dimensions, " keys, but sobol supports at most ",
                            sobol_dimensions),
                     "Choose search.strategy = random"});
    }
    auto const seed = static_cast<std::uint64_t>(settings.seed);
    std::vector<Point> points;
    constexpr std::uint32_t max_tries = 1'000'000;
    for (std::uint32_t index = 0; std::cmp_less(points.size(), settings.trials); ++index) {
        if (index == max_tries) {
            throw Error(ExitCode::usage,
                        {"search.constraints are too strict",
                         concat("only ", points.size(), " of ", max_tries,
                                " points tried meet all constraints, but search.trials = ",
                                settings.trials),
                         "Loosen the constraints, limit the ranges in [space] to values that can "
                         "meet them, or lower search.trials"});
        }
        Point point;
        auto const bits = sobol(index, dimensions);
        for (std::uint64_t at = 0; at < dimensions; ++at) { // a digital shift keeps the spread
            auto const shift = static_cast<std::uint32_t>(std::ldexp(draw(seed, {at}), 32));
            point.push_back(std::ldexp(static_cast<double>(bits[at] ^ shift), -32));
        }
        if (space.allows(space.values(point))) {
            points.push_back(std::move(point));
        }
    }
    return std::make_unique<Listed>(std::move(points));
}

} // namespace lockstep::search
