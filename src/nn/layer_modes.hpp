#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <utility>
#include <vector>

namespace lockstep::nn {

/// The modes of a module and all of its layers, some of which may be in evaluation mode while the
/// others train.
class LayerModes {
  public:
    explicit LayerModes(torch::nn::Module& module);

    void restore() const;
    /// Whether all train.
    bool all_train() const;

  private:
    std::vector<std::pair<torch::nn::Module*, bool>> modes_; ///< outer layers first
};

/// Puts one layer into evaluation mode, and leaves those within it as they are.
void rest_layer(torch::nn::Module& layer);

} // namespace lockstep::nn
