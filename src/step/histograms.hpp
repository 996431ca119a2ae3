#pragma once

#include "arena/layout.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/events/events.hpp"

#include <torch/nn/module.h>
#include <torch/types.h>

#include <vector>

namespace lockstep::train {

/// How the values of each parameter are spread; parameters that are not finite are left out.
std::vector<Histogram> histograms(torch::nn::Module const& model);

/// The sum of gradients after an exchange.
struct GradientSums {
    Layout const& layout;
    torch::Tensor const& values;     ///< [layout.size], correct in the owned ranges
    std::vector<Range> const& owned; ///< of this rank; each element has one owner
    double divisor = 1;
};

/// How the gradient of each trained parameter is spread. Gradients are only read.
///
/// Collective  over the world
std::vector<Histogram> gradient_histograms(comm::Communicator const& world,
                                           GradientSums const& sums);

} // namespace lockstep::train
