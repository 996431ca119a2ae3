#include "program/operators.hpp"
#include "program/sized.hpp"

#include <ATen/ATen.h>

#include "catch.hpp"

using namespace lockstep;

namespace {

c10::OperatorHandle operator_named(std::string const& name) {
    return std::get<c10::OperatorHandle>(program::find_operator("torch.ops.aten." + name));
}

at::Tensor result_of(std::string const& name, std::vector<c10::IValue> stack) {
    (*program::sized(operator_named(name)))(stack);
    return stack.at(0).toTensor();
}

using Whole = std::vector<std::int64_t>;

} // namespace

TEST_CASE("convolutions take their groups from their tensors") {
    auto const bias = at::rand({4});
    // Of 8 channels in 8 groups, 4 are left; of 8 groups of 3 channels, 2.
    for (auto const& [channels, weight] :
         {std::pair{4, at::rand({4, 1, 3, 3})}, std::pair{6, at::rand({4, 3, 3, 3})}}) {
        auto const input = at::rand({2, channels, 7, 7});
        auto const groups = channels / weight.size(1);
        auto const wanted = at::conv2d(input, weight, bias, 1, 1, 1, groups);
        CHECK(at::equal(result_of("conv2d.default",
                                  {input, weight, bias, Whole{1, 1}, Whole{1, 1}, Whole{1, 1}, 8}),
                        wanted));
        CHECK(at::equal(
            result_of("conv2d.padding", {input, weight, bias, Whole{1, 1}, "same", Whole{1, 1}, 8}),
            wanted));
        CHECK(at::equal(
            result_of("convolution.default", {input, weight, bias, Whole{1, 1}, Whole{1, 1},
                                              Whole{1, 1}, false, Whole{0, 0}, 8}),
            wanted));
        CHECK(at::equal(result_of("conv2d.default", {input[0], weight, bias, Whole{1, 1},
                                                     Whole{1, 1}, Whole{1, 1}, 8}),
                        at::conv2d(input[0], weight, bias, 1, 1, 1, groups)));
    }
    auto const input = at::rand({2, 4, 7, 7});
    auto const weight = at::rand({4, 3, 3, 3});
    CHECK(at::equal(
        result_of("convolution.default", {input, weight, c10::IValue(), Whole{1, 1}, Whole{0, 0},
                                          Whole{1, 1}, true, Whole{0, 0}, 2}),
        at::conv_transpose2d(input, weight, {}, 1, 0, 0, 2)));
}

TEST_CASE("norms take their shape from their tensors") {
    auto const input = at::rand({3, 2, 5});
    auto const scale = at::rand({2, 5});
    CHECK(
        at::equal(result_of("layer_norm.default", {input, Whole{2, 8}, scale, scale, 1e-5, false}),
                  at::layer_norm(input, {2, 5}, scale, scale, 1e-5, false)));
    CHECK(at::equal(result_of("rms_norm.default", {input, Whole{8}, scale[0], 1e-5}),
                    at::rms_norm(input, {5}, scale[0], 1e-5)));
}

TEST_CASE("operators without such sizes run as they are") {
    CHECK(program::sized(operator_named("relu.default")) == nullptr);
    CHECK(program::sized(operator_named("linear.default")) == nullptr);
}
