#include "federate/privacy_loss.hpp"

#include <cmath>
#include <tuple>

#include "catch.hpp"
#include "long_form.hpp"

using namespace lockstep::federate;

namespace {

struct Bounds {
    double rate;
    double noise;
    std::int64_t rounds;
    double delta;
    double lower;
    double upper;
};

// Of PyPI's dp-accounting 0.6.0, rounded to six digits:
// pld.privacy_loss_distribution.from_gaussian_mechanism(noise, pessimistic_estimate=UPPER,
//     sampling_prob=rate, value_discretization_interval=W, use_connect_dots=UPPER)
//     .self_compose(rounds, tail_mass_truncation=delta * 1e-6).get_epsilon_for_delta(delta)
// where UPPER is False for the lower estimate and True for the upper one, and W is 1e-5 where noise
// is at least 1 and rounds are below 1000, or else 5e-5.
constexpr Bounds bounds[] = {
    {0.01, 0.5, 1, 1e-05, 3.025333, 3.025358},
    {0.01, 0.5, 1, 0.001, 0.365001, 0.365026},
    {0.01, 0.5, 30, 1e-05, 5.125117, 5.125863},
    {0.01, 0.5, 30, 0.001, 2.409464, 2.410210},
    {0.01, 0.5, 1000, 1e-05, 13.335963, 13.360825},
    {0.01, 0.5, 1000, 0.001, 8.757472, 8.782334},
    {0.01, 1.1, 1, 1e-05, 0.142286, 0.142291},
    {0.01, 1.1, 1, 0.001, 0.016416, 0.016421},
    {0.01, 1.1, 30, 1e-05, 0.370049, 0.370199},
    {0.01, 1.1, 30, 0.001, 0.144765, 0.144915},
    {0.01, 1.1, 1000, 1e-05, 1.490363, 1.515364},
    {0.01, 1.1, 1000, 0.001, 0.938877, 0.963877},
    {0.01, 4, 1, 1e-05, 0.008039, 0.008044},
    {0.01, 4, 1, 0.001, 0.000000, 0.000000},
    {0.01, 4, 30, 1e-05, 0.042098, 0.042248},
    {0.01, 4, 30, 0.001, 0.015427, 0.015577},
    {0.01, 4, 1000, 1e-05, 0.247141, 0.272145},
    {0.01, 4, 1000, 0.001, 0.127551, 0.152555},
    {0.1, 0.5, 1, 1e-05, 6.575515, 6.575540},
    {0.1, 0.5, 1, 0.001, 3.717393, 3.717418},
    {0.1, 0.5, 30, 1e-05, 18.238678, 18.239428},
    {0.1, 0.5, 30, 0.001, 12.023683, 12.024433},
    {0.1, 0.5, 1000, 1e-05, 126.141571, 126.166569},
    {0.1, 0.5, 1000, 0.001, 105.515065, 105.540062},
    {0.1, 1.1, 1, 1e-05, 1.359024, 1.359029},
    {0.1, 1.1, 1, 0.001, 0.512099, 0.512104},
    {0.1, 1.1, 30, 1e-05, 3.475476, 3.475626},
    {0.1, 1.1, 30, 0.001, 2.135096, 2.135246},
    {0.1, 1.1, 1000, 1e-05, 21.067192, 21.092192},
    {0.1, 1.1, 1000, 0.001, 16.340829, 16.365829},
    {0.1, 4, 1, 1e-05, 0.110381, 0.110386},
    {0.1, 4, 1, 0.001, 0.042395, 0.042400},
    {0.1, 4, 30, 1e-05, 0.526351, 0.526501},
    {0.1, 4, 30, 0.001, 0.308322, 0.308472},
    {0.1, 4, 1000, 1e-05, 3.419341, 3.444341},
    {0.1, 4, 1000, 0.001, 2.390891, 2.415892},
    {0.3, 0.5, 1, 1e-05, 8.225341, 8.225366},
    {0.3, 0.5, 1, 0.001, 5.599536, 5.599561},
    {0.3, 0.5, 30, 1e-05, 40.411538, 40.412288},
    {0.3, 0.5, 30, 0.001, 30.191745, 30.192495},
    {0.3, 0.5, 1000, 1e-05, 461.319333, 461.344333},
    {0.3, 0.5, 1000, 0.001, 417.245775, 417.270775},
    {0.3, 1.1, 1, 1e-05, 2.511111, 2.511116},
    {0.3, 1.1, 1, 0.001, 1.406078, 1.406083},
    {0.3, 1.1, 30, 1e-05, 9.963932, 9.964082},
    {0.3, 1.1, 30, 0.001, 6.999456, 6.999606},
    {0.3, 1.1, 1000, 1e-05, 88.722913, 88.747913},
    {0.3, 1.1, 1000, 0.001, 75.805350, 75.830350},
    {0.3, 4, 1, 1e-05, 0.337394, 0.337399},
    {0.3, 4, 1, 0.001, 0.169356, 0.169361},
    {0.3, 4, 30, 1e-05, 1.723390, 1.723540},
    {0.3, 4, 30, 0.001, 1.128873, 1.129023},
    {0.3, 4, 1000, 1e-05, 12.627268, 12.652269},
    {0.3, 4, 1000, 0.001, 9.679784, 9.704784},
};

/// Delta of Gaussian noise without sampling: Balle, Wang, "Improving the Gaussian mechanism for
/// differential privacy" (ICML 2018), theorem 8, where mean is sqrt(rounds) / noise.
double delta_of_gaussian(double mean, double epsilon) {
    auto const below = [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; };
    return below(mean / 2 - epsilon / mean) - std::exp(epsilon) * below(-mean / 2 - epsilon / mean);
}

} // namespace

TEST_CASE("epsilon is within a hundredth above that of dp-accounting, and below Renyi's") {
    for (auto const& row : bounds) {
        SampledGaussian const round{row.rate, row.noise};
        auto const epsilon = epsilon_of_losses(round, row.rounds, row.delta);
        INFO("rate " << row.rate << " noise " << row.noise << " rounds " << row.rounds << " delta "
                     << row.delta << ": " << epsilon << ", not " << row.lower << " to "
                     << row.upper);
        CHECK(epsilon >= row.lower);
        CHECK(epsilon <= 1.01 * row.upper + 2e-5);
        CHECK(epsilon < renyi_bound(round, row.rounds, row.delta).epsilon);
    }
}

TEST_CASE("without sampling epsilon is within a hundredth above the exact one, in the tails, too") {
    struct Case {
        double noise;
        std::int64_t rounds;
        double delta;
    };
    for (auto const& [noise, rounds, delta] :
         {Case{0.5, 1, 1e-5}, Case{0.8, 7, 0.1}, Case{2, 1, 1e-25}, Case{4, 1000, 1e-12},
          Case{50, 1, 1e-3}, Case{300, 20000, 1e-8}, Case{0.2, 10, 1e-5}, Case{0.05, 1, 1e-5}}) {
        auto const mean = std::sqrt(static_cast<double>(rounds)) / noise;
        auto const epsilon = epsilon_of_losses({1, noise}, rounds, delta);
        INFO("noise " << noise << " rounds " << rounds << " delta " << delta << ": " << epsilon);
        CHECK(delta_of_gaussian(mean, epsilon) <= delta);
        CHECK(delta_of_gaussian(mean, 0.99 * epsilon - 2e-5) > delta);
    }
}

TEST_CASE("more rounds than the grid has room for still have an upper bound below Renyi's") {
    auto const many = std::int64_t{1} << 30;
    SampledGaussian const round{1e-6, 3};
    auto const epsilon = epsilon_of_losses(round, many, 1e-6);
    CHECK(epsilon < renyi_bound(round, many, 1e-6).epsilon);
    // About Gaussian: by the central limit, with a mean of rate sqrt(rounds (e^(1 / noise^2) - 1)).
    auto const mean = 1e-6 * std::sqrt(static_cast<double>(many) * std::expm1(1 / 9.0));
    CHECK(delta_of_gaussian(mean, epsilon) <= 1e-6);
    // Nearly all losses are in one cell, far from its middle.
    SampledGaussian const rare{1e-6, 0.5};
    CHECK(epsilon_of_losses(rare, 10'000'000, 1e-6) <
          renyi_bound(rare, 10'000'000, 1e-6).epsilon / 2);
}

TEST_CASE("an epsilon near the smallest that the grid resolves is found") {
    for (auto const& [rate, noise, rounds] : {std::tuple{0.01, 100.0, 45},
                                              {0.0001, 4.0, 490},
                                              {0.0001, 20.0, 45},
                                              {0.001, 40.0, 130}}) {
        auto const epsilon = epsilon_of_losses({rate, noise}, rounds, 1e-5);
        CHECK(epsilon >= 0);
        CHECK(epsilon <= renyi_bound({rate, noise}, rounds, 1e-5).epsilon);
    }
}

TEST_CASE("so many rounds that rounding errors count do not make epsilon too small") {
    if (!lockstep::test::is_long()) {
        return; // it takes seconds
    }
    SampledGaussian const round{1e-7, 20};
    auto const rounds = std::int64_t{10'000'000'000};
    // By the central limit, as above.
    auto const mean = 1e-7 * std::sqrt(static_cast<double>(rounds) * std::expm1(1 / 400.0));
    for (auto const epsilon :
         {epsilon_of_losses(round, rounds, 1e-8), renyi_bound(round, rounds, 1e-8).epsilon}) {
        CHECK(epsilon > 0);
        CHECK(delta_of_gaussian(mean, epsilon) <= 1e-8);
    }
}
