#pragma once

#include "checkpoint/model_file.hpp"
#include "nn/integer_layer.hpp"
#include "nn/layer_graph.hpp"

#include <string>
#include <utility>
#include <vector>

namespace lockstep::train {

/// The text of a quantised file's note of its layers (checkpoint::layers_note).
std::string layers_text(nn::LayerGraph const& graph);

/// The contents of a quantised file: all layers one after the other in a few arrays, which take
/// less space than separate arrays.
class IntegerArrays {
  public:
    /// `beside`: tensors of the model that belong to no int8 layer.
    IntegerArrays(nn::LayerGraph const& graph, std::vector<nn::IntegerWeights> const& layers,
                  std::vector<std::pair<std::string, torch::Tensor>> const& beside);

    std::vector<checkpoint::NamedArray> const& arrays() const noexcept { return arrays_; }
    std::int64_t weights() const noexcept { return weights_; } ///< in int8

  private:
    void add(std::string path, torch::Tensor const& tensor);

    std::vector<checkpoint::NamedArray> arrays_;
    std::vector<torch::Tensor> values_; ///< the memory of the arrays
    std::int64_t weights_ = 0;
};

/// The layers of such a file, for the graph of the model that it was made from.
///
/// Throws  Error 65 for a file of another model, or one with invalid scales
std::vector<nn::IntegerWeights> read_integers(checkpoint::ModelFile const& file,
                                              nn::LayerGraph const& graph);

/// One array of a model file.
///
/// Throws  Error 65 where it does not have the type and shape of `like`
torch::Tensor read_array(checkpoint::ModelFile const& file, std::string const& path,
                         torch::Tensor const& like);

} // namespace lockstep::train
