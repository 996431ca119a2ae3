#include "nn/models/legendre_memory.hpp"
#include "nn/models/lmu_cell.hpp"

#include "catch.hpp"
#include "distance.hpp"
#include "golden.hpp"

using namespace lockstep;

namespace {

torch::Tensor doubles(std::vector<double> const& values) {
    return torch::tensor(values, torch::kFloat64);
}

/// As in tests/golden/make_legendre_memory.py.
torch::Tensor wave(std::vector<std::int64_t> const& shape, double start) {
    auto const count = torch::empty(shape).numel();
    return (0.4 * torch::sin(start + 0.7 * torch::arange(count, torch::kFloat64))).reshape(shape);
}

torch::Tensor signal(std::int64_t steps, torch::Dtype type) {
    return (2 * wave({3, steps, 5}, 0.1)).to(type);
}

} // namespace

TEST_CASE("the memory's matrices are scipy's") {
    for (auto const& expected : test::golden("legendre_memory.json")["matrices"]) {
        auto const order = expected["order"].get<std::int64_t>();
        CAPTURE(order);
        auto const memory = nn::legendre_memory(order, expected["theta"]);
        CHECK(test::distance(memory.b, doubles(expected["b"])) < 1e-12);
        for (auto const& [row, values] : expected["rows"].items()) {
            CHECK(test::distance(memory.a[std::stol(row)], doubles(values)) < 1e-12);
        }
    }
}

TEST_CASE("all steps at once give what they give one by one, within rounding") {
    for (auto const& [order, theta, steps] :
         {std::tuple{8, 16.0, 300}, std::tuple{64, 100.0, 300}, std::tuple{1, 2.0, 1}}) {
        CAPTURE(order, steps);
        auto const memory = nn::legendre_memory(order, theta);
        auto const response = nn::impulse_response(memory, steps);
        for (auto const& [type, bound] :
             {std::pair{torch::kFloat64, 1e-13}, std::pair{torch::kFloat32, 1e-5}}) {
            auto const u = signal(steps, type);
            auto const stepwise = nn::remember_stepwise(memory, u);
            CHECK(stepwise.sizes() == torch::IntArrayRef({3, steps, 5 * order}));
            CHECK(test::distance(nn::remember_at_once(response, u), stepwise) < bound);
        }
    }
}

TEST_CASE("both forms have the same gradients") {
    auto const memory = nn::legendre_memory(8, 12);
    auto const response = nn::impulse_response(memory, 50);
    auto const gradient = [&](auto const& remember) {
        auto u = signal(50, torch::kFloat64).requires_grad_();
        auto const out = remember(u);
        (out * wave({3, 50, 40}, 0.5)).sum().backward();
        return u.grad();
    };
    auto const stepwise = gradient([&](auto const& u) { return nn::remember_stepwise(memory, u); });
    CHECK(stepwise.abs().max().item<double>() > 0.1);
    CHECK(test::distance(gradient([&](auto const& u) { return nn::remember_at_once(response, u); }),
                         stepwise) < 1e-12);
}

TEST_CASE("a memory holds the Legendre coefficients of the last steps") {
    // Of a constant there is the first one only: the constant.
    auto const memory = nn::legendre_memory(6, 20);
    auto const states =
        nn::remember_stepwise(memory, torch::full({1, 400, 1}, 0.75, torch::kFloat64));
    CHECK(test::distance(states[0][399], doubles({0.75, 0, 0, 0, 0, 0})) < 1e-6);
}

TEST_CASE("what comes later does not change what was remembered") {
    for (bool const stepwise : {false, true}) {
        nn::LegendreMemory layer(8, 12.0, stepwise);
        auto const longer = signal(90, torch::kFloat32);
        auto const whole = layer(longer);
        auto const part = layer(longer.slice(1, 0, 40));
        CHECK(test::distance(whole.slice(1, 0, 40), part) < (stepwise ? 1e-7 : 1e-5));
        // The length of what was seen before leaves no trace.
        nn::LegendreMemory fresh(8, 12.0, stepwise);
        CHECK(torch::equal(fresh(longer.slice(1, 0, 40)), part));
    }
}

TEST_CASE("an LMU cell gives what its equations give") {
    auto const expected = test::golden("legendre_memory.json")["cell"];
    std::vector<std::int64_t> const shape = expected["shape"];
    auto const [n, steps, inputs, hidden, order] =
        std::tuple{shape[0], shape[1], shape[2], shape[3], shape[4]};
    nn::LmuCell cell(inputs, hidden, order, expected["theta"]);
    cell->to(torch::kFloat64);
    double start = 0;
    for (auto& parameter : cell->parameters()) {
        torch::NoGradGuard const no_grad;
        parameter.copy_(wave(parameter.sizes().vec(), ++start));
    }
    auto const states = cell(wave({n, steps, inputs}, 7));
    CHECK(test::distance(states.flatten(), doubles(expected["states"])) < 1e-12);
    CHECK(states.sizes() == torch::IntArrayRef({n, steps, hidden}));
}

TEST_CASE("an LMU cell has the parameters that it is known to have") {
    // One value a step, 212 hidden, order 256 and ten classes: psMNIST's network of 102,027.
    nn::LmuCell cell(1, 212, 256, 784.0);
    std::int64_t parameters = (212 + 1) * 10;
    for (auto const& parameter : cell->parameters()) {
        parameters += parameter.numel();
    }
    CHECK(parameters == 102027);
}
