#include "lmu_cell.hpp"

#include "nn/to_device.hpp"

#include <torch/nn/init.h>

#include <cmath>

#include "legendre_memory.hpp"

namespace lockstep::nn {

LmuCellImpl::LmuCellImpl(std::int64_t inputs, std::int64_t hidden, std::int64_t order, double theta)
    : memory_(legendre_memory(order, theta)) {
    auto const uniform = [](std::int64_t size) {
        auto const bound = std::sqrt(3.0 / static_cast<double>(size));
        return torch::empty({size}).uniform_(-bound, bound);
    };
    auto const xavier = [](std::int64_t rows, std::int64_t columns) {
        return torch::nn::init::xavier_normal_(torch::empty({rows, columns}));
    };
    encode_input_ = register_parameter("encode_input", uniform(inputs));
    encode_hidden_ = register_parameter("encode_hidden", uniform(hidden));
    encode_memory_ = register_parameter("encode_memory", torch::zeros({order}));
    input_kernel_ = register_parameter("input_kernel", xavier(hidden, inputs));
    hidden_kernel_ = register_parameter("hidden_kernel", xavier(hidden, hidden));
    memory_kernel_ = register_parameter("memory_kernel", xavier(hidden, order));
}

torch::Tensor LmuCellImpl::forward(torch::Tensor const& inputs) {
    auto const transposed = to_device(memory_.a.t().to(inputs.scalar_type()), inputs.device());
    auto const b = to_device(memory_.b.to(inputs.scalar_type()), inputs.device());
    auto hidden = torch::zeros({inputs.size(0), hidden_kernel_.size(0)}, inputs.options());
    auto memory = torch::zeros({inputs.size(0), b.size(0)}, inputs.options());
    auto const from_inputs = inputs.matmul(input_kernel_.t());
    auto const written = inputs.matmul(encode_input_);
    std::vector<torch::Tensor> states;
    for (std::int64_t step = 0; step < inputs.size(1); ++step) {
        auto const u =
            written.select(1, step) + hidden.mv(encode_hidden_) + memory.mv(encode_memory_);
        memory = memory.matmul(transposed) + u.unsqueeze(1) * b;
        hidden = torch::tanh(from_inputs.select(1, step) + hidden.matmul(hidden_kernel_.t()) +
                             memory.matmul(memory_kernel_.t()));
        states.push_back(hidden);
    }
    return torch::stack(states, 1);
}

} // namespace lockstep::nn
