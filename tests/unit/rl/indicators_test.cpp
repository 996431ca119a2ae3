#include "rl/indicators.hpp"

#include "catch.hpp"
#include "error_of.hpp"
#include "golden_lines.hpp"

using namespace lockstep;
using namespace lockstep::rl;

namespace {

void check_near(std::vector<double> const& ours, std::string const& line) {
    auto const theirs = test::numbers_of(line);
    REQUIRE(ours.size() == theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
        CAPTURE(i);
        CHECK(ours[i] == Approx(theirs[i]).epsilon(1e-9).margin(1e-9));
    }
}

} // namespace

TEST_CASE("figures of prices are pandas' and numpy's") {
    auto const lines = test::golden_lines("indicators.txt");
    REQUIRE(lines.size() == 10);
    Bars const bars{test::numbers_of(lines[0]), test::numbers_of(lines[1]),
                    test::numbers_of(lines[2])};
    check_near(macd(bars.close), lines[3]);
    check_near(relative_strength(bars.close, 14), lines[4]);
    check_near(commodity_channel(bars, 14), lines[5]);
    check_near(directional(bars, 14), lines[6]);
    auto const turbulences = turbulence(test::numbers_of(lines[7]), 3, 20);
    check_near(turbulences, lines[8]);
    check_near({quantile(turbulences, 0.9)}, lines[9]);
}

TEST_CASE("a price that never moves has no turbulence, and says so") {
    std::vector<double> prices;
    for (int day = 0; day < 40; ++day) {
        prices.insert(prices.end(), {100, 50.0 + day % 7});
    }
    auto const error = test::error_of([&] { turbulence(prices, 2, 10); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "turbulence-quantile"));
}
