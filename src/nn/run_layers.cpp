#include "nn/run_layers.hpp"

#include "nn/max_pool.hpp"

#include <torch/nn/modules/activation.h>

namespace lockstep::nn {

torch::Tensor run_layers(std::span<torch::nn::AnyModule> layers, torch::Tensor values) {
    for (std::size_t at = 0; at < layers.size(); ++at) {
        bool const rectifies = layers[at].ptr()->as<torch::nn::ReLU>() != nullptr;
        auto* const pool =
            rectifies && at + 1 < layers.size() ? layers[at + 1].ptr()->as<MaxPool>() : nullptr;
        if (pool != nullptr) {
            values = pool->forward_rectified(values);
            ++at;
        } else {
            values = layers[at].forward(std::move(values));
        }
    }
    return values;
}

} // namespace lockstep::nn
