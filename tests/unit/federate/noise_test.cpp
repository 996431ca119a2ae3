#include "federate/noise.hpp"

#include <cmath>
#include <vector>

#include "catch.hpp"

using namespace lockstep::federate;

TEST_CASE("noise has the standard deviation that was asked for, and is its key's alone") {
    constexpr std::size_t count = 40000;
    auto const key = Secret(Digest{}).derived("noise");
    std::vector<double> values(count, 5);
    add_gaussian_noise(values, key, 2);
    double mean = 0;
    double beyond = 0; // two standard deviations, of which a Gaussian has 4.55 %
    for (auto const value : values) {
        mean += (value - 5) / count;
        beyond += std::fabs(value - 5) > 4 ? 100.0 / count : 0;
    }
    double variance = 0;
    for (auto const value : values) {
        variance += std::pow(value - 5 - mean, 2) / count;
    }
    CHECK(std::fabs(mean) < 0.05);
    CHECK(std::fabs(std::sqrt(variance) - 2) < 0.04);
    CHECK(std::fabs(beyond - 4.55) < 0.5);
    std::vector<double> again(count, 5);
    add_gaussian_noise(again, key, 2);
    CHECK(again == values);
    add_gaussian_noise(again, Secret(Digest{}).derived("other"), 0);
    CHECK(again == values);
    std::vector<double> other(count, 5);
    add_gaussian_noise(other, Secret(Digest{}).derived("other"), 2);
    CHECK(other != values);
}
