#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::nn {

/// The outputs of some layers inside a model in one forward pass, for a loss that needs them.
class HiddenStates {
  public:
    /// `wanted`: names of layers.
    explicit HiddenStates(std::vector<std::string> wanted) : wanted_(std::move(wanted)) {}

    /// A layer's outputs, which are kept if they are wanted; the last ones, where it runs several
    /// times.
    void keep(std::string const& name, torch::Tensor const& outputs);

    /// The outputs of the wanted layers, in their order; undefined where there was no such layer.
    std::vector<torch::Tensor> outputs() const;
    /// Names of all layers that ran.
    std::vector<std::string> const& layers() const { return layers_; }

  private:
    std::vector<std::string> wanted_;
    std::vector<std::string> layers_;
    std::map<std::string, torch::Tensor> outputs_;
};

/// Where a model's forward leaves the outputs of its layers; null: nowhere.
struct HiddenLink {
    HiddenStates* states = nullptr;
};

/// The sequence's forward; the outputs of each module are kept under `prefix`, a dot, and its name.
///
/// Shape   as the sequence's
/// Throws  what the modules throw
torch::Tensor forward_kept(torch::nn::Sequential& sequence, char const* prefix,
                           HiddenLink const& link, torch::Tensor const& input);

} // namespace lockstep::nn
