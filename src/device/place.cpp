#include "device/place.hpp"

namespace lockstep::train {

void replace(torch::Tensor const& tensor, torch::Tensor const& values) {
    tensor.unsafeGetTensorImpl()->shallow_copy_from(values.getIntrusivePtr());
}

void place(torch::nn::Module const& module, torch::Device device) {
    torch::NoGradGuard const no_grad;
    for (auto const& tensors : {module.parameters(), module.buffers()}) {
        for (auto const& tensor : tensors) {
            if (tensor.device() != device) {
                replace(tensor, tensor.detach().to(device));
            }
        }
    }
}

} // namespace lockstep::train
