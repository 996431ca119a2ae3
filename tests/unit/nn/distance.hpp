#pragma once

#include <torch/types.h>

namespace lockstep::test {

/// The largest difference of two elements.
inline double distance(torch::Tensor const& a, torch::Tensor const& b) {
    return (a - b).abs().max().item<double>();
}

} // namespace lockstep::test
