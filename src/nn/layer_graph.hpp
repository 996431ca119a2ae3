#pragma once

#include "lockstep/nn/model.hpp"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::nn {

/// A convolution or a fully connected layer of a model, with the batch norm that follows it.
struct WeightLayer {
    std::string weight;   ///< name of the parameter, "features.conv1.weight"
    torch::Tensor values; ///< of the weight, batch norm included; [outputs, inputs, place…]
    torch::Tensor bias;   ///< the same; [outputs]
    bool convolves = false;
    std::vector<std::int64_t> stride{}; ///< of a convolution, as the next three
    std::vector<std::int64_t> padding{};
    std::vector<std::int64_t> dilation{};
    std::int64_t groups = 1;
    torch::Tensor factor{}; ///< by which batch norm has multiplied the weight, [outputs]
};

/// The operators of a model's forward in evaluation, in which layers with weights can be computed
/// in another way. For models of one input whose forward is the same for every batch.
class LayerGraph {
  public:
    /// `model` is in evaluation mode and must outlive it.
    ///
    /// Throws  Error 64 for a model whose forward has branches, or has no such layer
    LayerGraph(Model& model, Interface const& interface);

    std::size_t layers() const noexcept { return layers_.size(); }
    /// A layer, with the values that the model has now.
    WeightLayer layer(std::size_t which) const;
    /// Names of parameters and buffers that no operator but these layers uses.
    std::vector<std::string> const& absorbed() const noexcept { return absorbed_; }

    /// Computes a layer's output, batch norm included; nothing: the layer is computed as usual.
    using Compute =
        std::function<std::optional<torch::Tensor>(std::size_t layer, torch::Tensor const& inputs)>;

    /// Shape  inputs [n, sample…]; returns what the model's forward does
    torch::Tensor run(torch::Tensor const& inputs, Compute const& compute) const;

  private:
    struct Found {
        torch::jit::Node* node = nullptr;
        torch::jit::Value const* inputs = nullptr;
        torch::jit::Value const* weight = nullptr; ///< [outputs, inputs, place…]
        torch::jit::Value const* bias = nullptr;   ///< null: none
        torch::jit::Node* norm = nullptr;          ///< null: none follows
    };

    std::string name_of(torch::jit::Value const* value) const;
    c10::IValue constant(torch::jit::Value const* value) const;
    torch::Tensor tensor_of(torch::jit::Value const* value) const;
    std::optional<Found> layer_at(torch::jit::Node& node) const;
    torch::jit::Node* norm_after(torch::jit::Node const& node) const;
    void absorb(Found const& found);

    torch::jit::Module script_;
    std::shared_ptr<torch::jit::Graph> graph_;
    std::map<torch::jit::Value const*, std::string> names_; ///< of modules and tensors
    std::map<std::string, int> uses_;                       ///< by operators, of tensors
    std::vector<Found> layers_;
    std::map<torch::jit::Node const*, std::size_t> place_; ///< in layers_
    std::map<torch::jit::Node const*, std::size_t> norms_; ///< the layer that each follows
    std::vector<std::string> absorbed_;
};

} // namespace lockstep::nn
