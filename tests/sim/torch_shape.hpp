#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace lockstep::sim {

/// The shape of a tensor, with its strides and type.
struct Shape {
    bool defined = true;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    at::ScalarType type = at::kFloat;

    friend bool operator==(Shape const&, Shape const&) = default;
};

Shape shape_of(at::Tensor const& tensor);
std::vector<Shape> shapes_of(std::vector<at::Tensor> const& tensors);

/// A tensor on a simulated device, of any contents.
at::Tensor make(Shape const& shape, int device);

} // namespace lockstep::sim
