#pragma once

#include "lockstep/nn/model.hpp"

namespace lockstep::nn {

/// Dropout (Srivastava et al., JMLR 2014) whose mask is drawn from the model's random key and the
/// layer's number, not from a generator shared by the process.
///
/// Kept elements are divided by 1 - `probability`; evaluation changes nothing.
///
/// Shape  any; the output has the same. `probability`, that of an element to become 0, lies in [0,
///        1), which is not checked
class DropoutImpl : public torch::nn::Module {
  public:
    DropoutImpl(double probability, std::uint64_t layer, std::shared_ptr<RandomKey> key);
    torch::Tensor forward(torch::Tensor const& inputs);

  private:
    double probability_;
    std::uint64_t layer_;
    std::shared_ptr<RandomKey> key_;
};
TORCH_MODULE(Dropout);

} // namespace lockstep::nn
