#include "program/widened.hpp"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <limits>

#include "catch.hpp"
#include "same_bits.hpp"

using namespace lockstep;

namespace {

using Shape = std::vector<std::int64_t>;

Shape doubled(Shape const& shape) {
    Shape extents(shape.begin() + 2, shape.end());
    std::ranges::for_each(extents, [](auto& extent) { extent *= 2; });
    return extents;
}

bool check_as_torch(torch::Tensor const& inputs, Shape const& extents) {
    auto const ours = inputs.detach().clone().requires_grad_();
    auto const theirs = inputs.detach().clone().requires_grad_();
    auto const outputs = program::widened(ours, extents);
    auto const wanted = extents.size() == 2 ? torch::upsample_nearest2d(theirs, extents)
                                            : torch::upsample_nearest3d(theirs, extents);
    CHECK(same_bits(outputs, wanted));
    auto gradient = torch::randn(wanted.sizes()) * 1e3;
    gradient.view(-1)[0] = -0.0F;
    gradient.view(-1)[1] = std::numeric_limits<float>::infinity();
    outputs.backward(gradient);
    wanted.backward(gradient);
    CHECK(same_bits(ours.grad(), theirs.grad()));
    return outputs.grad_fn()->name().find("WidenFunction") != std::string::npos;
}

} // namespace

TEST_CASE("widened values have the bits of LibTorch's, and so have their gradients") {
    torch::manual_seed(1);
    for (auto const& shape :
         {Shape{1, 1, 1, 1}, Shape{2, 3, 4, 5}, Shape{2, 64, 16, 16}, Shape{3, 5, 7, 33},
          Shape{1, 2, 90, 80}, Shape{2, 3, 2, 3, 4}, Shape{1, 8, 4, 8, 9}, Shape{1, 1, 1, 1, 1}}) {
        CAPTURE(shape);
        CHECK(check_as_torch(torch::randn(shape), doubled(shape)));
    }
    auto const before = at::get_num_threads();
    at::set_num_threads(3);
    CHECK(check_as_torch(torch::randn({4, 30, 20, 22}), {40, 44}));
    at::set_num_threads(before);
}

TEST_CASE("what own kernels do not widen is LibTorch's") {
    auto const image = torch::randn({2, 8, 6, 6});
    CHECK_FALSE(check_as_torch(image, {12, 13}));
    CHECK_FALSE(check_as_torch(image, {6, 6}));
    CHECK_FALSE(check_as_torch(image.contiguous(torch::MemoryFormat::ChannelsLast), {12, 12}));
}
