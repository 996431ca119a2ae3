#include "lockstep/nn/dropout.hpp"

#include "base/random.hpp"
#include "nn/to_device.hpp"

#include <ATen/CPUGeneratorImpl.h>

namespace lockstep::nn {

DropoutImpl::DropoutImpl(double probability, std::uint64_t layer, std::shared_ptr<RandomKey> key)
    : probability_(probability), layer_(layer), key_(std::move(key)) {}

torch::Tensor DropoutImpl::forward(torch::Tensor const& inputs) {
    if (!is_training() || probability_ == 0) {
        return inputs;
    }
    auto generator =
        at::detail::createCPUGenerator(random_key(key_->value, Stream::dropout, {layer_}));
    // Drawn on the host for every device: one key, one mask.
    auto const keep = to_device(at::empty(inputs.sizes(), inputs.options().device(at::kCPU))
                                    .bernoulli_(1 - probability_, generator),
                                inputs.device());
    return inputs * keep / (1 - probability_);
}

} // namespace lockstep::nn
