#pragma once

#include "program/batch_norm.hpp"

namespace lockstep::nn {

/// torch's BatchNorm2d or BatchNorm3d, `Base`, which in training computes by
/// `program::batch_norm`: same names, parameters, buffers and bits.
template <class Base>
class BatchNormLayer : public Base {
  public:
    using Base::Base;

    torch::Tensor forward(torch::Tensor const& inputs) {
        auto const& options = this->options;
        auto const momentum = options.momentum();
        if (!this->is_training() || !options.affine() || !options.track_running_stats() ||
            !momentum) {
            return Base::forward(inputs);
        }
        this->_check_input_dim(inputs);
        this->num_batches_tracked.add_(1);
        return program::batch_norm(inputs, {.weight = this->weight,
                                            .bias = this->bias,
                                            .running_mean = this->running_mean,
                                            .running_var = this->running_var,
                                            .momentum = *momentum,
                                            .epsilon = options.eps()});
    }
};

} // namespace lockstep::nn
