#pragma once

#include "arena/layout.hpp"
#include "batches/workload.hpp"
#include "lockstep/config/deck.hpp"
#include "model_files/channel_pruning.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep::train {

/// Throws  Error 64 for runs in which something other than the optimizer keeps a value per weight,
///         or whose model does not take plain samples
void require_channels_can_go(config::Deck const& deck, Workload const& work);

/// The model without these channels: `fresh`, one more instance of it with all channels of the
/// deck, gets the remaining shapes and values.
std::shared_ptr<nn::Model> model_without(ChannelRemoval const& removal, nn::Model const& model,
                                         std::shared_ptr<nn::Model> fresh);

/// Runs a model that has lost channels in evaluation, on two samples of zeros: the graphs of files
/// and plug-ins may hold numbers of channels besides the weights.
///
/// Throws  Error 64 with the reason when its forward fails
void require_runs(nn::Model& smaller, std::vector<std::int64_t> const& sample_shape);

/// The remaining parts of arrays that hold a value for each weight.
///
/// Shape  arrays [before.size]; returns [after.size] each
std::vector<torch::Tensor> arrays_without(ChannelRemoval const& removal, Layout const& before,
                                          Layout const& after,
                                          std::vector<torch::Tensor> const& arrays);

} // namespace lockstep::train
