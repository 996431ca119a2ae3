#include "lockstep/nn/dropout.hpp"

#include "nn/dropout_masks.hpp"

namespace lockstep::nn {

DropoutImpl::DropoutImpl(double probability, std::uint64_t layer, std::shared_ptr<RandomKey> key)
    : probability_(probability), layer_(layer), key_(std::move(key)) {}

torch::Tensor DropoutImpl::forward(torch::Tensor const& inputs) {
    if (!is_training() || probability_ == 0) {
        return inputs;
    }
    auto const keep = DropoutMasks::mask(
        {layer_, inputs.sizes().vec(), inputs.options(), 1 - probability_}, key_->value);
    return inputs * keep / (1 - probability_);
}

} // namespace lockstep::nn
