#pragma once

#include "batches/workload.hpp"
#include "checkpoint/weights.hpp"
#include "nn/layer_graph.hpp"
#include "nn/quantiser.hpp"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// Samples spread evenly over the set, in batches.
std::vector<torch::Tensor> calibration_samples(data::Dataset const& set, std::int64_t wanted);

/// The scale of each layer's inputs, by nn::Calibration's names.
///
/// Throws  Error 65 as nn::Observed::scale
std::vector<nn::ByteScale> calibrated(nn::LayerGraph const& graph,
                                      std::vector<torch::Tensor> const& samples,
                                      std::string const& method);

/// The learnt scales of a layer.
struct LearntScales {
    torch::Tensor weight; ///< [outputs] float32, before batch norm is folded in
    nn::ByteScale inputs;
};

/// The learnt scales of all layers in a file; nothing where it has none.
///
/// Throws  Error 65 where some are missing, or are not valid scales
std::optional<std::vector<LearntScales>> learnt_scales(nn::LayerGraph const& graph,
                                                       checkpoint::Weights const& weights);

/// The model of the deck without its rounding to int8.
///
/// Throws  Error 64 for a deck that cannot be trained for int8
std::shared_ptr<nn::Model> model_for_int8(config::Deck const& deck, Workload const& work);

/// Makes the workload's model, which is trained for int8, begin with the weights of `plain`, the
/// same model without its rounding, and with scales calibrated by samples of data.train. A function
/// of only these.
///
/// Throws  Error 64 for a model whose layers are not all trained for int8
void begin_scales(nn::Model& plain, config::Deck const& deck, Workload const& work);

} // namespace lockstep::train
