#include "program/batch_norm.hpp"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/torch.h>

#include <limits>

#include "catch.hpp"
#include "same_bits.hpp"

using namespace lockstep;

namespace {

struct Normed {
    torch::Tensor outputs;
    torch::Tensor of_inputs;
    torch::Tensor of_weight;
    torch::Tensor of_bias;
    torch::Tensor running_mean;
    torch::Tensor running_var;
    bool is_own = false;
};

/// By own kernels or by LibTorch; twice, so that running statistics are not those of the beginning.
Normed normed(torch::Tensor const& given, torch::Tensor const& gradient, double momentum,
              bool by_torch) {
    auto const channels = given.size(1);
    torch::manual_seed(3);
    auto const weight = (torch::rand({channels}) + 0.5).requires_grad_();
    auto const bias = torch::randn({channels}).requires_grad_();
    Normed result{.running_mean = torch::randn({channels}), .running_var = torch::rand({channels})};
    auto const inputs = given.clone().requires_grad_();
    for (int pass = 0; pass < 2; ++pass) {
        result.outputs = by_torch
                             ? torch::batch_norm(inputs, weight, bias, result.running_mean,
                                                 result.running_var, true, momentum, 1e-5, false)
                             : program::batch_norm(inputs, {weight, bias, result.running_mean,
                                                            result.running_var, momentum, 1e-5});
    }
    result.is_own = result.outputs.grad_fn()->name().find("BatchNormFunction") != std::string::npos;
    result.outputs.backward(gradient);
    result.of_inputs = inputs.grad();
    result.of_weight = weight.grad();
    result.of_bias = bias.grad();
    return result;
}

/// Returns whether own kernels have computed.
bool check_as_torch(torch::Tensor const& inputs, double momentum = 0.1) {
    auto const gradient = torch::randn(inputs.sizes());
    auto const ours = normed(inputs, gradient, momentum, false);
    auto const theirs = normed(inputs, gradient, momentum, true);
    CHECK(same_bits(ours.outputs, theirs.outputs));
    CHECK(same_bits(ours.of_inputs, theirs.of_inputs));
    CHECK(same_bits(ours.of_weight, theirs.of_weight));
    CHECK(same_bits(ours.of_bias, theirs.of_bias));
    CAPTURE(inputs.sizes(), inputs.strides(), ours.running_mean, theirs.running_mean);
    CHECK(same_bits(ours.running_mean, theirs.running_mean));
    CHECK(same_bits(ours.running_var, theirs.running_var));
    CHECK_FALSE(theirs.is_own);
    return ours.is_own;
}

} // namespace

TEST_CASE("batch norm has LibTorch's bits, whatever the shape") {
    torch::manual_seed(1);
    std::vector<std::vector<std::int64_t>> const shapes{
        {4, 16, 7, 7},    {64, 16, 28, 28}, {3, 1, 5, 5},    {2, 8, 1, 1},
        {1, 9, 3, 4},     {5, 7, 2, 3},     {8, 23, 14, 14}, {2, 3, 4, 5, 6},
        {4, 33, 2, 2, 2}, {2, 5, 11},       {1, 4, 1, 2}};
    for (auto const& shape : shapes) {
        CAPTURE(shape);
        check_as_torch(torch::randn(shape) * 3 + 1);
        check_as_torch(torch::randn(shape) * 1e-3 + 1e3, 0.37);
        check_as_torch(torch::full(shape, 2.5));
        auto odd = torch::randn(shape);
        odd.view(-1)[0] = std::numeric_limits<float>::infinity();
        odd.view(-1)[1] = -0.0F;
        check_as_torch(odd);
    }
}

TEST_CASE("own kernels compute where they can, and leave the rest to LibTorch") {
    torch::manual_seed(2);
    auto const plain = torch::randn({4, 8, 6, 6});
    bool const fuses = at::get_cpu_capability() == "AVX2" || at::get_cpu_capability() == "AVX512";
    CHECK(check_as_torch(plain) == fuses);
    CHECK_FALSE(check_as_torch(plain.contiguous(torch::MemoryFormat::ChannelsLast)));
    CHECK_FALSE(check_as_torch(plain.transpose(2, 3)));
    CHECK_FALSE(check_as_torch(torch::randn({6, 8})));
}

TEST_CASE("batch norm is the same on any number of threads") {
    torch::manual_seed(4);
    auto const inputs = torch::randn({5, 27, 14, 14});
    auto const before = at::get_num_threads();
    at::set_num_threads(3);
    check_as_torch(inputs);
    at::set_num_threads(before);
}
