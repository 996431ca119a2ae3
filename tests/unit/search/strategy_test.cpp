#include "search/forest.hpp"
#include "search/pareto.hpp"
#include "search/sobol.hpp"
#include "search/strategy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "catch.hpp"
#include "error_of.hpp"
#include "spaces.hpp"

using namespace lockstep;
using test::space_of;

namespace {

search::Settings settings_for(test::SpaceKeys const& keys) {
    return search::settings_of(test::space_source(keys));
}

} // namespace

TEST_CASE("Sobol's sequence is that of scipy") {
    // scipy.stats.qmc.Sobol(21, scramble=False, bits=32).random(1001), times 2^32; points 1, 6,
    // 1000
    CHECK(search::sobol(0, 3) == std::vector<std::uint32_t>{0, 0, 0});
    CHECK(search::sobol(1, 21) ==
          std::vector<std::uint32_t>{
              2147483648U, 2147483648U, 2147483648U, 2147483648U, 2147483648U, 2147483648U,
              2147483648U, 2147483648U, 2147483648U, 2147483648U, 2147483648U, 2147483648U,
              2147483648U, 2147483648U, 2147483648U, 2147483648U, 2147483648U, 2147483648U,
              2147483648U, 2147483648U, 2147483648U});
    CHECK(search::sobol(6, 21) ==
          std::vector<std::uint32_t>{
              2684354560U, 536870912U,  3758096384U, 2684354560U, 2684354560U, 3758096384U,
              536870912U,  536870912U,  536870912U,  1610612736U, 536870912U,  2684354560U,
              536870912U,  3758096384U, 2684354560U, 2684354560U, 2684354560U, 2684354560U,
              536870912U,  1610612736U, 1610612736U});
    CHECK(search::sobol(1000, 21) ==
          std::vector<std::uint32_t>{
              943718400U,  415236096U,  2227175424U, 2906652672U, 1203765248U, 3896508416U,
              197132288U,  3862953984U, 2151677952U, 297795584U,  364904448U,  1094713344U,
              692060160U,  1648361472U, 616562688U,  1589641216U, 3091202048U, 1480589312U,
              4257218560U, 3116367872U, 2243952640U});
}

TEST_CASE("a grid visits each combination that differs once") {
    test::SpaceKeys const keys{{"space.a.b", "uniform(0, 1)"},
                               {"space.a.c", "choice(x, y)"},
                               {"space.a.d", "integer(1, 2) if a.c = y"},
                               {"search.strategy", "grid"}};
    auto const space = space_of(keys);
    auto const strategy = search::make_strategy(settings_for(keys), space);
    std::set<search::Values> seen;
    while (auto const job = strategy->ask()) {
        CHECK(seen.insert(space.values(job->point)).second);
    }
    CHECK(seen.size() == 9); // 3 x (x, y with 1, y with 2)
    CHECK(seen.contains({{"a.b", "0.5"}, {"a.c", "x"}}));
    auto large = keys;
    large["search.grid-points"] = "1000";
    large["space.a.e"] = "uniform(0, 1)";
    CHECK(test::error_of([&] {
              auto const wide = space_of(large);
              search::make_strategy(settings_for(large), wide);
          }).code() == ExitCode::usage);
}

TEST_CASE("halving gives one trial in so many the next rung") {
    test::SpaceKeys const keys{
        {"space.a.b", "uniform(0, 1)"}, {"search.strategy", "halving"}, {"search.trials", "9"}};
    auto const space = space_of(keys);
    auto const strategy = search::make_strategy(settings_for(keys), space);
    std::vector<std::size_t> rungs;
    while (!strategy->is_finished()) {
        std::vector<search::Job> jobs;
        while (auto const job = strategy->ask()) {
            jobs.push_back(*job);
        }
        rungs.push_back(jobs.size());
        for (auto const& job : jobs) {
            auto const bad = job.trial % 2 == 0 ? 100 : 0;
            strategy->tell({job.trial, job.share, {static_cast<double>(bad + job.trial)}});
            CHECK((rungs.size() == 1 || job.trial % 2 == 1));
        }
    }
    CHECK(rungs == std::vector<std::size_t>{9, 3, 1});
}

TEST_CASE("hyperband has brackets of trials that begin at different shares") {
    test::SpaceKeys const keys{{"space.a.b", "uniform(0, 1)"}, {"search.strategy", "hyperband"}};
    auto const space = space_of(keys);
    auto const strategy = search::make_strategy(settings_for(keys), space);
    std::map<double, int> counts;
    while (auto const job = strategy->ask()) {
        ++counts[std::round(job->share * 9)];
    }
    CHECK(counts == std::map<double, int>{{1, 9}, {3, 5}, {9, 3}});
}

TEST_CASE("fronts and crowding are NSGA-II's") {
    double const inf = std::numeric_limits<double>::infinity();
    std::vector<std::vector<double>> const losses{{1, 4}, {2, 2},     {4, 1}, {3, 3},
                                                  {5, 5}, {inf, inf}, {2, 2}};
    using Front = std::vector<std::size_t>;
    CHECK(search::fronts_of(losses) == std::vector<Front>{{0, 1, 2, 6}, {3}, {4}, {5}});
    CHECK(search::fronts_of({}).empty());
    CHECK(search::crowding({{1, 4}, {2, 2}, {4, 1}}, {0, 1, 2}) ==
          std::vector<double>{inf, 2, inf});
}

TEST_CASE("tpe finds a minimum better than random points") {
    double sums[2] = {0, 0};
    for (int seed = 0; seed < 10; ++seed) {
        for (int which = 0; which < 2; ++which) {
            test::SpaceKeys const keys{{"space.a.b", "uniform(0, 1)"},
                                       {"space.a.c", "uniform(0, 1)"},
                                       {"search.strategy", which == 0 ? "tpe" : "random"},
                                       {"search.batch", "1"},
                                       {"search.trials", "60"},
                                       {"search.seed", std::to_string(seed)}};
            auto const space = space_of(keys);
            auto const strategy = search::make_strategy(settings_for(keys), space);
            double best = 1e9;
            while (auto const job = strategy->ask()) {
                auto const loss =
                    std::pow(job->point[0] - 0.7, 2) + std::pow(job->point[1] - 0.2, 2);
                best = std::min(best, loss);
                strategy->tell({job->trial, 1, {loss}});
            }
            CHECK(strategy->is_finished());
            sums[which] += best;
        }
    }
    CHECK(sums[0] < sums[1] / 2);
}

TEST_CASE("nsga2 moves its population towards the front") {
    test::SpaceKeys keys{{"search.strategy", "nsga2"},
                         {"search.population", "20"},
                         {"search.trials", "600"},
                         {"search.goals", "a min, b min"}};
    for (int at = 0; at < 6; ++at) {
        keys["space.x.x" + std::to_string(at)] = "uniform(0, 1)";
    }
    auto const space = space_of(keys);
    auto const strategy = search::make_strategy(settings_for(keys), space);
    double first = 0;
    double last = 0;
    for (int n = 0; auto const job = strategy->ask(); ++n) { // ZDT1
        double g = 0;
        for (std::size_t at = 1; at < 6; ++at) {
            g += job->point[at];
        }
        g = 1 + 9 * g / 5;
        (n < 20 ? first : last) += n < 20 || n >= 580 ? g : 0;
        strategy->tell({job->trial, 1, {job->point[0], g * (1 - std::sqrt(job->point[0] / g))}});
    }
    CHECK(strategy->is_finished());
    CHECK(last < first / 2);
}

TEST_CASE("pbt continues the best in place of the worst, with other values") {
    test::SpaceKeys const keys{{"space.a.b", "uniform(0, 1)"},
                               {"search.strategy", "pbt"},
                               {"search.population", "5"},
                               {"search.intervals", "3"}};
    auto const space = space_of(keys);
    auto const strategy = search::make_strategy(settings_for(keys), space);
    int jobs = 0;
    std::vector<search::Job> round;
    while (!strategy->is_finished()) {
        round.clear();
        while (auto const job = strategy->ask()) {
            round.push_back(*job);
        }
        jobs += static_cast<int>(round.size());
        CHECK(round.size() == 5);
        if (jobs > 5) {
            CHECK(round.front().parent == 0); // before those that continue
            CHECK(round.front().parent_share == Approx((jobs - 5) / 15.0));
            CHECK_FALSE(round.front().point.empty());
        }
        for (auto const& job : round) {
            strategy->tell({job.trial, job.share, {static_cast<double>(job.trial)}});
        }
    }
    CHECK(jobs == 15);
}

TEST_CASE("pbt trains no member again that has failed, however many have") {
    test::SpaceKeys const keys{{"space.a.b", "uniform(0, 1)"},
                               {"search.strategy", "pbt"},
                               {"search.population", "5"},
                               {"search.intervals", "2"}};
    auto const space = space_of(keys);
    auto const failed = GENERATE(0, 2, 4, 5); // of the first five, the last ones
    auto const strategy = search::make_strategy(settings_for(keys), space);
    for (int n = 0; n < 5; ++n) {
        auto const job = strategy->ask();
        REQUIRE(job.has_value());
        auto const loss = job->trial < 5 - failed ? static_cast<double>(job->trial) : HUGE_VAL;
        strategy->tell({job->trial, job->share, {loss}});
    }
    int fresh = 0;
    for (int n = 0; n < 5; ++n) {
        auto const job = strategy->ask();
        REQUIRE(job.has_value());
        CHECK((job->trial >= 5 || job->trial < 5 - failed));
        fresh += job->trial >= 5 ? 1 : 0;
        CHECK((job->trial < 5 || job->parent == (failed == 5 ? -1 : 0)));
        strategy->tell({job->trial, job->share, {1}});
    }
    CHECK(fresh == std::max(failed, 1));
    CHECK(strategy->is_finished());
}

TEST_CASE("a forest knows which column matters") {
    std::vector<std::vector<double>> rows;
    std::vector<double> targets;
    for (int n = 0; n < 60; ++n) {
        rows.push_back({n / 60.0, (n * 37 % 60) / 60.0});
        targets.push_back(std::abs(rows.back()[1] - 0.4));
    }
    auto const importance = search::permutation_importance(rows, targets);
    CHECK(importance[1] > 0.9);
    CHECK(importance[0] + importance[1] == Approx(1));
    CHECK(search::permutation_importance({}, {}).empty());
    CHECK(search::permutation_importance({{1}, {2}, {3}, {4}}, {5, 5, 5, 5})[0] == 0);
}

TEST_CASE("nsga2 finds most of ZDT1's front") {
    test::SpaceKeys keys{{"search.strategy", "nsga2"},
                         {"search.population", "40"},
                         {"search.trials", "2000"},
                         {"search.goals", "a min, b min"}};
    for (int at = 10; at < 20; ++at) {
        keys["space.x.x" + std::to_string(at)] = "uniform(0, 1)";
    }
    auto const space = space_of(keys);
    auto const strategy = search::make_strategy(settings_for(keys), space);
    std::vector<std::pair<double, double>> all;
    while (auto const job = strategy->ask()) {
        double sum = 0;
        for (std::size_t at = 1; at < job->point.size(); ++at) {
            sum += job->point[at];
        }
        auto const g = 1 + sum; // 9 of them
        auto const a = job->point[0];
        all.emplace_back(a, g * (1 - std::sqrt(a / g)));
        strategy->tell({job->trial, 1, {all.back().first, all.back().second}});
    }
    std::ranges::sort(all);
    double volume = 0;
    double top = 1.1;
    for (auto const& [a, b] : all) {
        if (a < 1.1 && b < top) {
            volume += (1.1 - a) * (top - b);
            top = b;
        }
    }
    CHECK(volume > 0.8); // of 0.8767; without recombination 0.5
}

TEST_CASE("asha continues one trial in so many of a rung, the best so far") {
    test::SpaceKeys const keys{{"space.a.b", "uniform(0, 1)"},
                               {"search.strategy", "asha"},
                               {"search.trials", "12"},
                               {"search.minimum-share", "0.333"}};
    auto const space = space_of(keys);
    auto const strategy = search::make_strategy(settings_for(keys), space);
    std::vector<std::int64_t> promoted;
    while (auto const job = strategy->ask()) {
        if (job->share > 0.9) {
            promoted.push_back(job->trial);
        }
        strategy->tell({job->trial, job->share, {static_cast<double>((job->trial * 5) % 12)}});
    }
    CHECK(strategy->is_finished());
    // Losses are 0 5 10, 3 8 1, 6 11 4, 9 2 7: after each three one more of the best continues.
    CHECK(promoted == std::vector<std::int64_t>{0, 5, 3, 10});
}
