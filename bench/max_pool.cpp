// Times max pools of float32 on one core, and their gradients, by own kernels and by LibTorch:
//
//     cmake --build build --target max_pool_bench
//     MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2147483647 build/bench/max_pool_bench 15
//
// The variables let glibc keep large blocks of memory, as Lockstep does. The number is how many
// pairs of measurements, one side after the other. Printed are the medians, the least times, and
// the median and the range over pairs of how many times as fast ours is.

#include "program/max_pool.hpp"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <vector>

namespace {

using lockstep::program::MaxPoolOptions;

struct Contest {
    std::vector<std::int64_t> shape;
    MaxPoolOptions options;
};

struct Times {
    std::vector<double> forward;
    std::vector<double> backward;
};

torch::Tensor pooled_by_torch(torch::Tensor const& inputs, MaxPoolOptions const& options) {
    auto const pool = options.dimensions == 2 ? &at::max_pool2d : &at::max_pool3d;
    return pool(inputs, options.kernel, options.stride, options.padding, options.dilation,
                options.ceil_mode);
}

torch::Tensor measure(Contest const& contest, auto const& pool, Times& times) {
    using Clock = std::chrono::steady_clock;
    auto const ms = [](auto span) {
        return std::chrono::duration<double, std::milli>(span).count();
    };
    torch::manual_seed(1);
    auto const inputs = torch::randn(contest.shape, torch::requires_grad());
    auto const begin = Clock::now();
    auto const outputs = pool(inputs, contest.options);
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
    for (auto const& contest :
         {Contest{{64, 16, 28, 28}, by_2}, Contest{{64, 32, 14, 14}, by_2},
          Contest{{16, 64, 112, 112}, by_2}, Contest{{16, 64, 112, 112}, of_resnet},
          Contest{{4, 16, 16, 32, 32}, of_volumes}}) {
        Times ours;
        Times theirs;
        for (int pair = -1; pair < pairs; ++pair) {
            auto const own = measure(contest, lockstep::program::max_pool, ours);
            if (!torch::equal(own, measure(contest, pooled_by_torch, theirs))) {
                std::cerr << "the gradients differ\n";
                return 1;
            }
            if (pair < 0) { // to warm up
                ours = theirs = {};
            }
        }
        std::cout << torch::IntArrayRef(contest.shape) << ", windows of "
                  << torch::IntArrayRef(contest.options.kernel) << "\n";
        tell("forward", ours.forward, theirs.forward);
        tell("backward", ours.backward, theirs.backward);
    }
}
