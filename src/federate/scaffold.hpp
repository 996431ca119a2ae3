#pragma once

#include "federate/model_vector.hpp"

#include <span>
#include <vector>

// SCAFFOLD (Karimireddy et al., arXiv 1910.06378): each site keeps a control variate, the mean
// gradient of its last training, and the coordinator that of all sites. A site adds the difference
// to its gradients, so that sites with different data do not drift apart.
namespace lockstep::federate {

/// What a site adds to its gradients: `all` - `own`. Both have the model's names and shapes.
ModelVector correction_of(ModelVector const& model, std::vector<float> const& all,
                          std::vector<float> const& own);

/// A site's next control variate: `own` - `all` + (first - trained) / rates (option II), where
/// `rates` is the sum of the learning rates of all steps. Buffers have none: 0.
///
/// Throws  Error 65 for models of different shapes
std::vector<float> next_control(ModelVector const& first, ModelVector const& trained,
                                std::vector<float> const& own, double rates);

/// Moves the coordinator's control variate, the mean over `all` samples, by the mean change of
/// sites that have `counted` of them. It stays the mean of all sites' control variates, each
/// weighted by the site's samples, whoever takes part and whoever joins.
///
/// Shape  change [values of the model]
void move_control(ModelVector& model, std::span<double const> change, double counted, double all);

} // namespace lockstep::federate
