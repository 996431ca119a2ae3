#include "program/transposed.hpp"

#include <torch/torch.h>

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("transposed values are LibTorch's, and so are their gradients") {
    torch::manual_seed(1);
    for (auto const& shape : std::vector<std::vector<std::int64_t>>{
             {1, 1, 1}, {2, 8, 8}, {3, 7, 9}, {2, 40, 96}, {5, 17, 8}, {2, 64, 101}, {1, 3, 65}}) {
        CAPTURE(shape);
        auto const ours = torch::randn(shape, torch::requires_grad());
        auto const theirs = ours.detach().clone().requires_grad_();
        auto const outputs = program::transposed(ours);
        auto const wanted = theirs.transpose(1, 2).contiguous();
        CHECK(outputs.grad_fn()->name().find("TransposeFunction") != std::string::npos);
        CHECK(outputs.is_contiguous());
        CHECK(torch::equal(outputs, wanted));
        auto const gradient = torch::randn(wanted.sizes());
        outputs.backward(gradient);
        wanted.backward(gradient);
        CHECK(torch::equal(ours.grad(), theirs.grad()));
    }
}

TEST_CASE("what own kernels do not know is transposed by LibTorch") {
    auto const values = torch::randn({2, 5, 6});
    for (auto const& others :
         {values.to(torch::kDouble), values.transpose(1, 2), torch::randn({2, 5, 0})}) {
        CHECK(torch::equal(program::transposed(others), others.transpose(1, 2)));
        CHECK(program::transposed(others).is_alias_of(others));
    }
}
