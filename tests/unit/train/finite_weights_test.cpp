#include "lockstep/nn/model.hpp"
#include "model_files/finite_weights.hpp"

#include <limits>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;

namespace {

/// A model with a mask, as attention has them.
class Masked : public nn::Model {
  public:
    Masked() {
        weight = register_parameter("weight", torch::zeros({2, 3}));
        mask = register_buffer("mask", torch::zeros({3}));
        register_buffer("count", torch::zeros({}, torch::kInt64));
    }

    torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only(); }

    torch::Tensor weight;
    torch::Tensor mask;
};

} // namespace

TEST_CASE("weights that are not finite are refused with their name, but masks may hold infinity") {
    torch::NoGradGuard const no_grad;
    auto const infinity = std::numeric_limits<float>::infinity();
    Masked model;
    auto const refused = [&](char const* why) {
        auto const error = test::error_of([&] { train::require_finite_weights(model, "best.h5"); });
        return error.code() == ExitCode::data && test::says(error, "the weights in best.h5") &&
               test::says(error, why);
    };
    model.mask[1] = -infinity;
    CHECK_NOTHROW(train::require_finite_weights(model, "best.h5"));
    model.mask[0] = std::numeric_limits<float>::quiet_NaN();
    CHECK(refused("model/mask holds NaN"));
    model.mask[0] = 0;
    model.weight[1][2] = -infinity;
    CHECK(refused("model/weight holds infinity"));
    model.weight[0][0] = std::numeric_limits<float>::quiet_NaN();
    CHECK(refused("model/weight holds NaN"));
}
