#include "nn/adaptable_linear.hpp"

#include "base/adapter_names.hpp"

namespace lockstep::nn {

void AdaptableLinearImpl::adapt(Adapter const& adapter) {
    adapter_ = {.a = register_parameter(std::string(lockstep::adapter_a), adapter.a),
                .b = register_parameter(std::string(lockstep::adapter_b), adapter.b),
                .scale = adapter.scale};
}

torch::Tensor AdaptableLinearImpl::forward(torch::Tensor const& inputs) {
    auto const outputs = torch::nn::LinearImpl::forward(inputs);
    return adapter_ ? outputs + (*adapter_)(inputs) : outputs;
}

} // namespace lockstep::nn
