#include <array>
#include <cmath>

#include "catch.hpp"
#include "federate/server_step.hpp"

using namespace lockstep::federate;

namespace {

ModelVector model_of(std::vector<float> values) {
    ModelVector model;
    model.values = std::move(values);
    return model;
}

} // namespace

TEST_CASE("fedavg and fedprox add the mean change times the server's rate") {
    for (auto const* const strategy : {"fedavg", "fedprox"}) {
        Charter charter;
        charter.strategy = strategy;
        charter.server_rate = 0.5;
        auto model = model_of({1, -2});
        apply_change(model, std::array{0.5, 4.0}, charter);
        CHECK(model.values == std::vector<float>{1.25F, 0.0F});
        CHECK(model.first_moment.empty());
    }
}

TEST_CASE("fedadam takes Adam's steps without bias correction") {
    Charter charter;
    charter.strategy = "fedadam";
    charter.server_rate = 0.01;
    charter.server_epsilon = 1e-3;
    auto model = model_of({1});
    double value = 1;
    double first = 0;
    double second = 1e-6;
    for (auto const change : {0.5, -0.25, 0.125}) {
        apply_change(model, std::array{change}, charter);
        first = 0.9 * first + 0.1 * change;
        second = 0.99 * second + 0.01 * change * change;
        value += 0.01 * first / (std::sqrt(second) + 1e-3);
        CHECK(std::fabs(model.values[0] - value) < 1e-6);
    }
}
