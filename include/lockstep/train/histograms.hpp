#pragma once

#include "lockstep/train/report.hpp"

#include <torch/torch.h>

#include <vector>

namespace lockstep::train {

/// How the values of each parameter are spread; parameters that are not finite are left out.
std::vector<Histogram> histograms(torch::nn::Module const& model);

} // namespace lockstep::train
