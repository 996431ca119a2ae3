#pragma once

#include <torch/nn/module.h>

namespace lockstep::nn {

/// A module is in evaluation mode while this exists; then it returns to its previous mode.
class EvaluationMode {
  public:
    explicit EvaluationMode(torch::nn::Module& module)
        : module_(module), was_training_(module.is_training()) {
        module_.eval();
    }
    EvaluationMode(EvaluationMode const&) = delete;
    EvaluationMode& operator=(EvaluationMode const&) = delete;
    ~EvaluationMode() { module_.train(was_training_); }

  private:
    torch::nn::Module& module_;
    bool was_training_;
};

} // namespace lockstep::nn
