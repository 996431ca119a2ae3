#pragma once

#include "lockstep/nn/model.hpp"

namespace lockstep::test {

/// Gives what it is given.
class Echo : public nn::Model {
  public:
    torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only(); }
};

} // namespace lockstep::test
