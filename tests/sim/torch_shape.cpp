#include "torch_shape.hpp"

#include "torch_sim.hpp"

namespace lockstep::sim {

Shape shape_of(at::Tensor const& tensor) {
    if (!tensor.defined()) {
        return {.defined = false, .sizes = {}, .strides = {}};
    }
    return {true, tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

std::vector<Shape> shapes_of(std::vector<at::Tensor> const& tensors) {
    std::vector<Shape> shapes;
    for (auto const& each : tensors) {
        shapes.push_back(shape_of(each));
    }
    return shapes;
}

at::Tensor make(Shape const& shape, int device) {
    auto const options =
        at::TensorOptions(shape.type).device(device_type, static_cast<c10::DeviceIndex>(device));
    return shape.defined ? at::empty_strided(shape.sizes, shape.strides, options) : at::Tensor();
}

} // namespace lockstep::sim
