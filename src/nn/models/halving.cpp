#include "halving.hpp"

#include "program/max_pool.hpp"

namespace lockstep::nn {

torch::Tensor halved(torch::Tensor const& inputs) {
    return inputs.dim() == 4 ? program::max_pool(inputs, {.kernel = {2}})
           : inputs.is_cpu() ? program::max_pool(inputs, {.dimensions = 3, .kernel = {2}})
                             : halved_by_planes(inputs);
}

torch::Tensor halved_by_planes(torch::Tensor const& volumes) {
    auto const samples = volumes.size(0);
    auto const channels = volumes.size(1);
    auto const depth = volumes.size(2);
    auto const planes = torch::max_pool2d(volumes.flatten(1, 2), 2);
    auto const columns = planes.reshape({samples, channels, depth, -1});
    return torch::max_pool2d(columns, {2, 1})
        .reshape({samples, channels, -1, planes.size(2), planes.size(3)});
}

} // namespace lockstep::nn
