#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>

namespace lockstep::nn {

/// How the memory of an LMU changes in one step: m_t = a m_{t-1} + b u_t.
struct MemoryStep {
    torch::Tensor a; ///< [order, order] float64
    torch::Tensor b; ///< [order] float64
};

/// A Legendre memory, which keeps a signal's last `theta` steps as its first `order` Legendre
/// coefficients:
///   theta m'(t) = A m(t) + B u(t)
///   A_ij = (2i + 1) (i < j ? -1 : (-1)^(i - j + 1)),  B_i = (2i + 1) (-1)^i
/// in steps of 1 by zero-order hold, which is exact for signals that are constant in each step
/// (Voelker, Kajic, Eliasmith, "Legendre Memory Units", NeurIPS 2019).
MemoryStep legendre_memory(std::int64_t order, double theta);

/// The memory 0, 1, …, steps - 1 steps after an impulse: b, a b, a a b, …
///
/// Shape  returned [order, steps] float64
torch::Tensor impulse_response(MemoryStep const& memory, std::int64_t steps);

/// The memory of every channel of a signal after each step, one step after the other.
///
/// Shape  signal [n, steps, channels]; returned [n, steps, channels · order]
torch::Tensor remember_stepwise(MemoryStep const& memory, torch::Tensor const& signal);

/// The same for all steps at once, as a convolution with the impulse response by Fourier transform
/// over at least 2 steps - 1 values, so that nothing wraps around (Chilkuri, Eliasmith,
/// "Parallelizing Legendre Memory Unit Training", ICML 2021). Equal to `remember_stepwise` within
/// rounding. Values after a step never change its memory, beyond rounding.
///
/// Shape  response [order, steps]; signal and returned as above
torch::Tensor remember_at_once(torch::Tensor const& response, torch::Tensor const& signal);

/// The memories of all channels as a layer without parameters.
class LegendreMemoryImpl : public torch::nn::Module {
  public:
    /// `stepwise`: computed step by step instead of all at once
    LegendreMemoryImpl(std::int64_t order, double theta, bool stepwise);
    torch::Tensor forward(torch::Tensor const& signal);

  private:
    MemoryStep memory_;
    bool stepwise_;
    torch::Tensor response_; ///< of the longest signal so far
};
TORCH_MODULE(LegendreMemory);

} // namespace lockstep::nn
