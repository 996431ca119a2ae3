#include "program/max_pool.hpp"
#include "program/pooled.hpp"

#include <ATen/Parallel.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/torch.h>

#include <limits>
#include <optional>

#include "catch.hpp"
#include "same_bits.hpp"

using namespace lockstep;

namespace {

using program::MaxPoolOptions;

torch::Tensor pooled_by_torch(torch::Tensor const& inputs, MaxPoolOptions const& options) {
    auto const pool = options.dimensions == 1   ? &at::max_pool1d
                      : options.dimensions == 2 ? &at::max_pool2d
                                                : &at::max_pool3d;
    return pool(options.rectified ? torch::relu(inputs) : inputs, options.kernel, options.stride,
                options.padding, options.dilation, options.ceil_mode);
}

torch::Tensor drawn_from(std::vector<float> const& values, torch::IntArrayRef shape) {
    auto const which =
        torch::randint(static_cast<std::int64_t>(values.size()), shape, torch::kLong);
    return torch::tensor(values).index({which});
}

/// Inputs on which kernels differ: ties of both zeros, values that are no numbers, infinities, and
/// values that are almost zero.
std::vector<torch::Tensor> inputs_of(torch::IntArrayRef shape) {
    constexpr auto infinity = std::numeric_limits<float>::infinity();
    constexpr auto nan = std::numeric_limits<float>::quiet_NaN();
    return {torch::randn(shape),
            drawn_from({0.0F, -0.0F, 1.0F}, shape),
            drawn_from({nan, -nan, -infinity, infinity, 0.0F, 1.0F}, shape),
            drawn_from({-infinity, -infinity, -infinity, nan}, shape),
            drawn_from({1e-42F, -1e-42F, 2e-45F, -0.0F}, shape),
            torch::full(shape, -infinity)};
}

/// Whether own kernels pool these inputs, and not LibTorch.
bool is_own(torch::Tensor const& inputs, MaxPoolOptions const& options) {
    auto const outputs = program::max_pool(inputs.detach().requires_grad_(), options);
    return outputs.grad_fn()->name().find("MaxPoolFunction") != std::string::npos;
}

std::tuple<torch::Tensor, torch::Tensor> indexed_by_torch(torch::Tensor const& inputs,
                                                          MaxPoolOptions const& options) {
    auto const pool = options.dimensions == 1   ? &at::max_pool1d_with_indices
                      : options.dimensions == 2 ? &at::max_pool2d_with_indices
                                                : &at::max_pool3d_with_indices;
    return pool(options.rectified ? torch::relu(inputs) : inputs, options.kernel, options.stride,
                options.padding, options.dilation, options.ceil_mode);
}

void check_indices(torch::Tensor const& inputs, MaxPoolOptions const& options) {
    auto const ours = inputs.clone().requires_grad_();
    auto const theirs = inputs.clone().requires_grad_();
    auto const pooled = program::max_pool_with_indices(ours, options);
    auto const [wanted, indices] = indexed_by_torch(theirs, options);
    CHECK(same_bits(pooled.outputs, wanted));
    CHECK(torch::equal(pooled.indices, indices));
    CHECK(pooled.indices.scalar_type() == torch::kLong);
    CHECK(pooled.indices.strides() == indices.strides());
    CHECK(!pooled.indices.requires_grad());
    auto const gradient = torch::randn_like(wanted.detach());
    pooled.outputs.backward(gradient);
    wanted.backward(gradient);
    CHECK(same_bits(ours.grad(), theirs.grad()));
}

void check_as_torch(torch::Tensor const& inputs, MaxPoolOptions const& options) {
    check_indices(inputs, options);
    auto const ours = inputs.clone().requires_grad_();
    auto const theirs = inputs.clone().requires_grad_();
    auto const outputs = program::max_pool(ours, options);
    auto const wanted = pooled_by_torch(theirs, options);
    CHECK(same_bits(outputs, wanted));
    CHECK(outputs.strides() == wanted.strides());
    auto const gradient = torch::where(torch::rand_like(wanted) < 0.3,
                                       drawn_from({-0.0F, 1e-42F, 1e30F}, wanted.sizes()),
                                       torch::randn_like(wanted.detach()));
    outputs.backward(gradient);
    wanted.backward(gradient);
    CHECK(same_bits(ours.grad(), theirs.grad()));
    CHECK(ours.grad().strides() == theirs.grad().strides());
    torch::NoGradGuard const no_gradients;
    CHECK(same_bits(program::max_pool(inputs, options), wanted));
}

/// The table's row for one kernel: strides, paddings and both ways to round the outputs' extents.
void walk(std::vector<std::int64_t> const& shape, std::vector<std::int64_t> const& kernel) {
    auto const dimensions = kernel.size();
    std::vector<std::int64_t> half(kernel);
    std::ranges::for_each(half, [](auto& extent) { extent /= 2; });
    for (auto const& inputs : inputs_of(shape)) {
        for (std::int64_t const stride : {0, 1, 2, 3}) {
            for (auto const& padding : {std::vector<std::int64_t>{0}, half}) {
                for (int const which : {0, 1, 2, 3}) {
                    MaxPoolOptions options{.dimensions = dimensions, .kernel = kernel};
                    options.stride.assign(stride > 0 ? 1 : 0, stride);
                    options.padding = padding;
                    options.ceil_mode = which % 2 == 1;
                    options.rectified = which > 1;
                    CAPTURE(shape, kernel, stride, padding, options.ceil_mode, options.rectified);
                    REQUIRE(is_own(inputs, options));
                    check_as_torch(inputs, options);
                }
            }
        }
    }
}

} // namespace

TEST_CASE("max pools have the bits of LibTorch's, and so have their gradients") {
    torch::manual_seed(1);
    using Shape = std::vector<std::int64_t>;
    for (auto const& kernel : {Shape{2}, Shape{3}, Shape{5}}) {
        for (std::int64_t const length : {5, 16, 23, 40}) {
            walk({2, 3, length}, kernel);
        }
    }
    for (auto const& kernel : {Shape{2, 2}, Shape{3, 3}, Shape{1, 2}, Shape{3, 2}}) {
        for (auto const& extents : {Shape{3, 3}, Shape{7, 14}, Shape{8, 17}, Shape{9, 36}}) {
            walk({2, 2, extents[0], extents[1]}, kernel);
        }
    }
    walk({3, 28, 28}, {2, 2}); // without a batch
    for (auto const& kernel : {Shape{2, 2, 2}, Shape{1, 2, 2}, Shape{3, 3, 3}}) {
        walk({2, 2, 5, 6, 19}, kernel);
    }
    walk({1, 1, 40, 40}, {16, 16}); // as many places as a byte can tell
}

TEST_CASE("what own max pools do not know is LibTorch's") {
    auto const image = torch::randn({2, 3, 40, 40});
    MaxPoolOptions const by_2{.kernel = {2}};
    CHECK(is_own(image, by_2));
    CHECK(!is_own(image.to(torch::kDouble), by_2));
    CHECK(!is_own(image.contiguous(torch::MemoryFormat::ChannelsLast), by_2));
    CHECK(!is_own(image.transpose(2, 3), by_2));
    MaxPoolOptions const wide{.kernel = {17, 16}};
    CHECK(!is_own(image, wide));
    check_as_torch(image, wide);
    MaxPoolOptions const dilated{.kernel = {2}, .dilation = {2}};
    CHECK(!is_own(image, dilated));
    check_as_torch(image, dilated);
    for (auto const& refused :
         {MaxPoolOptions{.kernel = {0}}, MaxPoolOptions{.kernel = {2, 2, 2}},
          MaxPoolOptions{.kernel = {2}, .padding = {2}}, MaxPoolOptions{.kernel = {50}}}) {
        CHECK_THROWS_AS(program::max_pool(image, refused), c10::Error);
    }
    CHECK_THROWS_AS(program::max_pool(image[0][0][0], by_2), c10::Error);
}

TEST_CASE("max pools are the same on any number of threads") {
    auto const image = torch::randn({7, 5, 64, 66});
    MaxPoolOptions const options{.kernel = {3}, .stride = {2}, .padding = {1}};
    auto const before = at::get_num_threads();
    at::set_num_threads(3);
    check_as_torch(image, options);
    at::set_num_threads(before);
}

TEST_CASE("traces have LibTorch's max pool") {
    auto const trace = torch::jit::tracer::trace(
        {torch::randn({1, 1, 4, 4})},
        [](torch::jit::Stack const& stack) -> torch::jit::Stack {
            return {program::max_pool(stack.front().toTensor(), {.kernel = {2}})};
        },
        [](torch::Tensor const&) { return std::string(); });
    CHECK(trace.first->graph->toString().find("aten::max_pool2d") != std::string::npos);
}

TEST_CASE("gradients of a max pool refuse to have gradients") {
    auto const image = torch::randn({1, 1, 4, 4}, torch::requires_grad());
    auto const outputs = program::max_pool(image, {.kernel = {2}});
    auto const gradient = torch::ones({1, 1, 2, 2}, torch::requires_grad());
    CHECK_THROWS_WITH(torch::autograd::grad({outputs}, {image}, {gradient}, true, true),
                      Catch::Matchers::Contains("no gradient of its own"));
}

namespace {

/// A node of this operator, which leaves its results in slots, or only the first.
program::Node node_of(char const* name, bool is_indexed) {
    using Slot = std::optional<std::size_t>;
    program::Node node;
    node.op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    node.results = {{false, {Slot(0)}}, {false, {is_indexed ? Slot(1) : Slot()}}};
    return node;
}

std::vector<c10::IValue> run_in_place_of(program::Node const& node, torch::Tensor const& image) {
    std::vector<c10::IValue> stack{image,
                                   c10::List<std::int64_t>{3, 3},
                                   c10::List<std::int64_t>{},
                                   c10::List<std::int64_t>{1, 1},
                                   c10::List<std::int64_t>{1},
                                   true};
    auto const pooled = program::pooled(node);
    REQUIRE(pooled != nullptr);
    (*pooled)(stack);
    auto const& outputs = stack.front().toTensor();
    CHECK(same_bits(outputs, torch::max_pool2d(image, 3, {}, 1, 1, true)));
    CHECK(outputs.grad_fn()->name().find("MaxPoolFunction") != std::string::npos);
    return stack;
}

} // namespace

TEST_CASE("exported programs pool by own kernels") {
    CHECK(program::pooled(node_of("aten::relu", false)) == nullptr);
    auto const image = torch::randn({2, 3, 9, 9}, torch::requires_grad());
    CHECK(run_in_place_of(node_of("aten::max_pool2d", false), image).size() == 1);
    auto const unread = run_in_place_of(node_of("aten::max_pool2d_with_indices", false), image);
    REQUIRE(unread.size() == 2);
    CHECK(!unread[1].toTensor().defined());
    auto const read = run_in_place_of(node_of("aten::max_pool2d_with_indices", true), image);
    auto const& [outputs, indices] = torch::max_pool2d_with_indices(image, 3, {}, 1, 1, true);
    CHECK(torch::equal(read.at(1).toTensor(), indices));
    auto const gradient = torch::randn_like(outputs.detach()); // a backward in the program itself
    CHECK(same_bits(torch::max_pool2d_with_indices_backward(gradient, image, 3, {}, 1, 1, true,
                                                            read.at(1).toTensor()),
                    torch::autograd::grad({outputs}, {image}, {gradient}).front()));
}
