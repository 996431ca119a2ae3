#include "program/step_operators.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/torch.h>

#include "catch.hpp"

using namespace lockstep;

namespace {

torch::Tensor called(char const* name, torch::jit::Stack stack) {
    c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
    return stack.empty() ? torch::Tensor() : stack.front().toTensor();
}

} // namespace

TEST_CASE("linear is LibTorch's, whichever library computes it") {
    program::register_step_operators();
    program::register_step_operators(); // as for each segment
    torch::NoGradGuard const no_gradients;
    torch::manual_seed(3);
    for (std::int64_t const rows : {1, 16, 300}) {
        for (std::int64_t const outputs : {8, 2048}) {
            auto const x = torch::randn({rows, 512});
            auto const weight = torch::randn({outputs, 512});
            auto const transposed = torch::randn({512, outputs}).t();
            CAPTURE(rows, outputs);
            for (auto const& each : {weight, transposed}) {
                auto const product = x.matmul(each.t());
                auto const plain = called("lockstep::linear", {x, each, c10::IValue()});
                CHECK(torch::allclose(plain, product, 1e-4, 1e-3));
                for (auto const& bias :
                     {torch::randn({outputs}), torch::randn({1}).expand({outputs}),
                      torch::randn({outputs, 3}).select(1, 1)}) {
                    auto const biased = called("lockstep::linear", {x, each, bias});
                    CHECK(torch::allclose(biased, product + bias, 1e-4, 1e-3));
                    CHECK(torch::equal(biased, called("lockstep::linear", {x, each, bias})));
                }
            }
        }
    }
}

TEST_CASE("a product is written where it is wanted") {
    program::register_step_operators();
    auto const a = torch::randn({3, 4});
    auto const b = torch::randn({4, 2});
    auto const place = torch::zeros({3, 2});
    called("lockstep::mm_into", {a, b, place});
    CHECK(torch::equal(place, a.mm(b)));
}

TEST_CASE("pools are LibTorch's, with its defaults") {
    program::register_step_operators();
    auto const x = torch::randn({2, 3, 7, 9}, torch::requires_grad());
    for (auto const layout : {torch::MemoryFormat::Contiguous, torch::MemoryFormat::ChannelsLast}) {
        auto const laid = x.detach().contiguous(layout);
        torch::jit::Stack stack{laid,
                                c10::List<std::int64_t>{3, 2},
                                c10::List<std::int64_t>{},
                                c10::List<std::int64_t>{1, 1},
                                c10::List<std::int64_t>{1, 1},
                                true};
        c10::Dispatcher::singleton().findSchemaOrThrow("lockstep::max_pool2d", "").callBoxed(stack);
        auto const [values, places] = torch::max_pool2d_with_indices(x, {3, 2}, {}, 1, 1, true);
        CHECK(torch::equal(stack.at(0).toTensor(), values));
        CHECK(torch::equal(stack.at(1).toTensor(), places));
        auto const gradient = torch::randn_like(values);
        auto const of_x = torch::autograd::grad({values}, {x}, {gradient}).front();
        CHECK(torch::equal(called("lockstep::max_pool2d_backward",
                                  {gradient, laid, c10::List<std::int64_t>{3, 2},
                                   c10::List<std::int64_t>{}, c10::List<std::int64_t>{1, 1},
                                   c10::List<std::int64_t>{1, 1}, true, stack.at(1).toTensor()}),
                           of_x));
    }
}
