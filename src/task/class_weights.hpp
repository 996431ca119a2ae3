#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::task {

/// Weights of classes in the loss. With n_c samples of class c, N in all, K classes that occur and
/// shares p_c = n_c / N:
///   none      1
///   balanced  N / (K n_c), as scikit-learn's compute_class_weight("balanced")
///   median    median(p) / p_c (Eigen and Fergus 2015, median frequency balancing)
/// or a list, one for each class. A class that does not occur gets 0.
///
/// `counts` is empty where they are not known.
///
/// Throws  Error 64 for another text, or a list of another length
std::vector<double> class_weights(std::string const& wanted,
                                  std::vector<std::int64_t> const& counts, std::int64_t classes);

} // namespace lockstep::task
