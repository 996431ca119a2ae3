// Times operators of float32 on one core, and their gradients, by own kernels and by LibTorch:
//
//     cmake --build build --target own_kernels_bench
//     MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2147483647 build/bench/own_kernels_bench 15
//
// The variables let glibc keep large blocks of memory, as Lockstep does. The number is how many
// pairs of measurements, one side after the other. Printed are the medians, the least times, and
// the median and the range over pairs of how many times as fast ours is.

#include "program/batch_norm.hpp"
#include "program/max_pool.hpp"
#include "program/transposed.hpp"
#include "program/widened.hpp"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace {

using lockstep::program::MaxPoolOptions;

using Operator = std::function<torch::Tensor(torch::Tensor const&)>;

struct Contest {
    std::string what;
    std::vector<std::int64_t> shape;
    Operator ours;
    Operator theirs;
};

struct Times {
    std::vector<double> forward;
    std::vector<double> backward;
};

Contest of_pool(std::string what, std::vector<std::int64_t> shape, MaxPoolOptions const& options) {
    auto const pool = options.dimensions == 2 ? &at::max_pool2d : &at::max_pool3d;
    return {std::move(what), std::move(shape),
            [options](auto const& inputs) { return lockstep::program::max_pool(inputs, options); },
            [options, pool](auto const& inputs) {
                return pool(options.rectified ? torch::relu(inputs) : inputs, options.kernel,
                            options.stride, options.padding, options.dilation, options.ceil_mode);
            }};
}

Contest of_batch_norm(std::vector<std::int64_t> shape) {
    auto const channels = shape[1];
    lockstep::program::BatchNormTerms const terms{torch::rand({channels}, torch::requires_grad()),
                                                  torch::rand({channels}, torch::requires_grad()),
                                                  torch::zeros({channels}),
                                                  torch::ones({channels})};
    return {"batch norm", std::move(shape),
            [terms](auto const& inputs) { return lockstep::program::batch_norm(inputs, terms); },
            [terms](auto const& inputs) {
                return torch::batch_norm(inputs, terms.weight, terms.bias, terms.running_mean,
                                         terms.running_var, true, terms.momentum, terms.epsilon,
                                         false);
            }};
}

Contest of_transpose(std::vector<std::int64_t> shape) {
    return {"rows and columns exchanged", std::move(shape), lockstep::program::transposed,
            [](auto const& values) { return values.transpose(1, 2).contiguous(); }};
}

Contest of_widening(std::vector<std::int64_t> shape) {
    std::vector<std::int64_t> const extents{2 * shape[2], 2 * shape[3]};
    return {"widened by nearest neighbours", std::move(shape),
            [extents](auto const& values) { return lockstep::program::widened(values, extents); },
            [extents](auto const& values) { return torch::upsample_nearest2d(values, extents); }};
}

torch::Tensor measure(Contest const& contest, Operator const& computed, Times& times) {
    using Clock = std::chrono::steady_clock;
    auto const ms = [](auto span) {
        return std::chrono::duration<double, std::milli>(span).count();
    };
    torch::manual_seed(1);
    auto const inputs = torch::randn(contest.shape, torch::requires_grad());
    auto const begin = Clock::now();
    auto const outputs = computed(inputs);
    auto const middle = Clock::now();
    auto const gradient = torch::ones_like(outputs);
    auto const before = Clock::now();
    auto const of_inputs = torch::autograd::grad({outputs}, {inputs}, {gradient}).front();
    times.backward.push_back(ms(Clock::now() - before));
    times.forward.push_back(ms(middle - begin));
    return of_inputs;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

void tell(char const* what, std::vector<double> const& ours, std::vector<double> const& theirs) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        ratios.push_back(theirs[i] / ours[i]);
    }
    auto const [least, most] = std::ranges::minmax(ratios);
    std::cout << "  " << what << ": " << median(ours) << " ms, least " << std::ranges::min(ours)
              << "; LibTorch " << median(theirs) << " ms, least " << std::ranges::min(theirs)
              << "; " << median(ratios) << " times as fast (" << least << " to " << most << ")"
              << std::endl;
}

} // namespace

int main(int count, char** words) {
    auto const pairs = count > 1 ? std::atoi(words[1]) : 15;
    at::set_num_threads(1);
    MaxPoolOptions const by_2{.kernel = {2}};
    MaxPoolOptions const of_resnet{.kernel = {3}, .stride = {2}, .padding = {1}};
    MaxPoolOptions const of_volumes{.dimensions = 3, .kernel = {2}};
    MaxPoolOptions const of_relu{.kernel = {2}, .rectified = true};
    for (auto const& contest :
         {of_pool("2 x 2", {64, 16, 28, 28}, by_2), of_pool("2 x 2", {64, 32, 14, 14}, by_2),
          of_pool("2 x 2", {16, 64, 112, 112}, by_2),
          of_pool("3 x 3, stride 2", {16, 64, 112, 112}, of_resnet),
          of_pool("2 x 2 x 2", {4, 16, 16, 32, 32}, of_volumes),
          of_pool("ReLU and 2 x 2", {64, 16, 28, 28}, of_relu), of_batch_norm({64, 16, 28, 28}),
          of_batch_norm({64, 32, 14, 14}), of_batch_norm({8, 12, 8, 32, 32}),
          of_transpose({64, 40, 96}), of_transpose({64, 96, 64}), of_widening({8, 64, 16, 16}),
          of_widening({8, 32, 32, 32})}) {
        Times ours;
        Times theirs;
        for (int pair = -1; pair < pairs; ++pair) {
            auto const own = measure(contest, contest.ours, ours);
            if (!torch::equal(own, measure(contest, contest.theirs, theirs))) {
                std::cerr << "the gradients differ\n";
                return 1;
            }
            if (pair < 0) { // to warm up
                ours = theirs = {};
            }
        }
        std::cout << torch::IntArrayRef(contest.shape) << ", " << contest.what << "\n";
        tell("forward", ours.forward, theirs.forward);
        tell("backward", ours.backward, theirs.backward);
    }
}
