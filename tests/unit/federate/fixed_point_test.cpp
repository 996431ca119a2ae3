#include "federate/fixed_point.hpp"

#include <cmath>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::federate;

TEST_CASE("a sum of the largest changes of all sites does not overflow, and one more bit would") {
    for (std::size_t const sites : {1, 2, 3, 20, 1000}) {
        for (double const range : {0.001, 1.0, 4.0, 1000.0}) {
            auto const point = FixedPoint::for_sum(range, static_cast<double>(sites), sites);
            for (double const sign : {-1.0, 1.0}) {
                std::uint32_t sum = 0;
                for (std::size_t i = 0; i < sites; ++i) {
                    sum += point.encoded(sign * range, FixedPoint::Rounding::nearest);
                }
                auto const expected = sign * range * static_cast<double>(sites);
                CHECK(std::abs(point.decoded(sum) - expected) <=
                      static_cast<double>(sites) / point.scale);
            }
            CHECK(2 * point.scale * range * static_cast<double>(sites) > 2147483646.0);
        }
    }
}

TEST_CASE("values come back to half a step, and no norm grows where it must not") {
    auto const point = FixedPoint::for_sum(4, 3, 3);
    for (double value = -4; value <= 4; value += 0.0371) {
        auto const near = point.decoded(point.encoded(value, FixedPoint::Rounding::nearest));
        CHECK(std::abs(near - value) <= 0.5 / point.scale);
        auto const inward = point.decoded(point.encoded(value, FixedPoint::Rounding::toward_zero));
        CHECK(std::abs(inward) <= std::abs(value));
        CHECK(std::abs(inward - value) < 1 / point.scale);
    }
}

TEST_CASE("a range that leaves too few bits is refused") {
    CHECK(test::code_of([] { FixedPoint::for_sum(1e6, 1e4, 10000); }) == ExitCode::ok);
    CHECK(test::code_of([] { FixedPoint::for_sum(1, 2e6, 2000000); }) == ExitCode::usage);
    CHECK(test::code_of([] { FixedPoint::for_sum(0, 1, 1); }) == ExitCode::usage);
}
