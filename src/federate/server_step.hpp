#pragma once

#include "federate/charter.hpp"
#include "federate/model_vector.hpp"

#include <span>

namespace lockstep::federate {

/// Moves the global model by the mean change of a round's sites: fedavg and fedprox add it, times
/// the server's rate (McMahan et al., arXiv 1602.05629; Li et al., arXiv 1812.06127); fedadam
/// treats it as a gradient (Reddi et al., arXiv 2003.00295, algorithm 2: betas 0.9 and 0.99, no
/// bias correction). Buffers are no weights: they become the mean of the sites'. With differential
/// privacy they stay as they are.
///
/// Shape  change [values of the model]
void apply_change(ModelVector& model, std::span<double const> change, Charter const& charter);

} // namespace lockstep::federate
