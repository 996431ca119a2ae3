#include "federate/fourier.hpp"

#include <cmath>
#include <numbers>

#include "catch.hpp"

using namespace lockstep::federate;

TEST_CASE("the transform is the sum that defines it") {
    for (std::size_t size = 2; size <= 64; size *= 2) {
        std::vector<std::complex<double>> values;
        for (std::size_t i = 0; i < size; ++i) {
            auto const at = static_cast<double>(i);
            values.emplace_back(std::sin(at * at), std::cos(3 * at + 1));
        }
        auto transformed = values;
        fourier(transformed);
        for (std::size_t f = 0; f < size; ++f) {
            std::complex<double> sum = 0;
            for (std::size_t i = 0; i < size; ++i) {
                auto const turns = static_cast<double>(f * i) / static_cast<double>(size);
                sum += values[i] * std::polar(1.0, -2 * std::numbers::pi * turns);
            }
            INFO("size " << size << " frequency " << f);
            CHECK(std::abs(transformed[f] - sum) < 1e-12);
        }
    }
}
