#include "nn/models/rotary_scaling.hpp"

#include <vector>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using nn::RotaryScaling;

namespace {

/// 500000^(-i / 8): those of a head of width 16, with Llama 3's base.
torch::Tensor frequencies() {
    return torch::pow(500000.0, -torch::arange(8, torch::kFloat64) / 8.0);
}

/// The largest relative difference.
double apart(torch::Tensor const& found, std::vector<double> const& expected) {
    auto const values = torch::tensor(expected, torch::kFloat64);
    return (found / values - 1).abs().max().item<double>();
}

} // namespace

// Computed in Python from the formula of transformers (`_compute_llama3_parameters` in
// modeling_rope_utils.py). With w = 2 pi / f, the wavelength of a frequency f:
//   w < context / high: f;  w > context / low: f / factor;  otherwise (1 - s) f / factor + s f
//   with s = (context / w - low) / (high - low)
TEST_CASE("frequencies are scaled as Llama 3.1 and 3.2 scale them") {
    CHECK(apart(RotaryScaling::of("llama3 32 1 4 8192").scaled(frequencies()),
                {1, 0.193922745, 0.0376060309, 0.00729266474, 0.000429556797, 8.57025549e-06,
                 1.66196747e-06, 3.22293293e-07}) < 1e-8);
    CHECK(apart(RotaryScaling::of("llama3 8.0 1.0 4.0 8192").scaled(frequencies()),
                {1, 0.193922745, 0.0376060309, 0.00729266474, 0.000524846161, 3.4281022e-05,
                 6.64786987e-06, 1.28917317e-06}) < 1e-8);
}

TEST_CASE("linear scaling divides all frequencies, and none changes no bit") {
    auto const given = frequencies().to(torch::kFloat32);
    CHECK(torch::equal(RotaryScaling::of(" linear  4 ").scaled(given), given / 4));
    CHECK(torch::equal(RotaryScaling::of("none").scaled(given), given));
    CHECK(RotaryScaling::of("none") == RotaryScaling());
}

TEST_CASE("a scaling that is none is refused") {
    for (auto const* const text :
         {"", "yarn 4", "linear", "linear 0.5", "linear x", "linear inf", "linear 4 4", "none 1",
          "llama3 8 1 4", "llama3 8 4 1 8192", "llama3 8 0 4 8192", "llama3 8 1 4 0"}) {
        CAPTURE(text);
        auto const error = test::error_of([&] { RotaryScaling::of(text); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, "llama3 FACTOR LOW HIGH CONTEXT"));
    }
}
