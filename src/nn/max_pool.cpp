#include "nn/max_pool.hpp"

#include <torch/types.h>

namespace lockstep::nn {

namespace {

bool do_not_overlap(program::MaxPoolOptions const& options) {
    program::MaxPoolOptions const plain;
    return options.stride.empty() && options.padding == plain.padding &&
           options.dilation == plain.dilation && !options.ceil_mode;
}

} // namespace

torch::Tensor pooled(torch::Tensor const& inputs, program::MaxPoolOptions const& options) {
    bool const by_planes = options.dimensions == 3 && !inputs.is_cpu() && do_not_overlap(options);
    if (!by_planes) {
        return program::max_pool(inputs, options);
    }
    auto const& kernel = options.kernel;
    return pooled_by_planes(options.rectified ? torch::relu(inputs) : inputs,
                            {kernel.front(), kernel[kernel.size() / 2], kernel.back()});
}

torch::Tensor pooled_by_planes(torch::Tensor const& volumes,
                               std::array<std::int64_t, 3> const& kernel) {
    auto const samples = volumes.size(0);
    auto const channels = volumes.size(1);
    auto const depth = volumes.size(2);
    auto const planes = torch::max_pool2d(volumes.flatten(1, 2), {kernel[1], kernel[2]});
    auto const columns = planes.reshape({samples, channels, depth, -1});
    return torch::max_pool2d(columns, {kernel[0], 1})
        .reshape({samples, channels, -1, planes.size(2), planes.size(3)});
}

} // namespace lockstep::nn
