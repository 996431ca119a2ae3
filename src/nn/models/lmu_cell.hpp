#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>

#include "legendre_memory.hpp"

namespace lockstep::nn {

/// A step of the LMU as it was first described, whose memory is written from the input, the hidden
/// state and itself:
///   u_t = e_x x_t + e_h h_{t-1} + e_m m_{t-1}
///   m_t = a m_{t-1} + b u_t
///   h_t = tanh(W_x x_t + W_h h_{t-1} + W_m m_t)
/// e_x and e_h begin uniform in ± sqrt(3 / fan-in), e_m at zero, W Xavier-normal.
class LmuCellImpl : public torch::nn::Module {
  public:
    LmuCellImpl(std::int64_t inputs, std::int64_t hidden, std::int64_t order, double theta);

    /// The hidden state after every step, starting from zeros.
    ///
    /// Shape  inputs [n, steps, inputs]; returned [n, steps, hidden]
    torch::Tensor forward(torch::Tensor const& inputs);

  private:
    MemoryStep memory_;
    torch::Tensor encode_input_;  ///< e_x [inputs]
    torch::Tensor encode_hidden_; ///< e_h [hidden]
    torch::Tensor encode_memory_; ///< e_m [order]
    torch::Tensor input_kernel_;  ///< W_x [hidden, inputs]
    torch::Tensor hidden_kernel_; ///< W_h [hidden, hidden]
    torch::Tensor memory_kernel_; ///< W_m [hidden, order]
};
TORCH_MODULE(LmuCell);

} // namespace lockstep::nn
