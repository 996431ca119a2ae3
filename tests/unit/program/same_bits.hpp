#pragma once

#include <torch/types.h>

/// Whether two tensors of float32 or float64 have the same shape and bits, however they lie.
inline bool same_bits(torch::Tensor const& a, torch::Tensor const& b) {
    auto const type = a.element_size() == 4 ? torch::kInt : torch::kLong;
    return a.sizes() == b.sizes() &&
           torch::equal(a.detach().contiguous().view(type), b.detach().contiguous().view(type));
}
