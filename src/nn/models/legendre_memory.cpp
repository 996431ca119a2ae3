#include "legendre_memory.hpp"

#include "nn/to_device.hpp"

namespace lockstep::nn {

MemoryStep legendre_memory(std::int64_t order, double theta) {
    // exp([[A, B], [0, 0]] / theta) = [[a, b], [0, 1]]
    auto continuous = torch::zeros({order + 1, order + 1}, torch::kFloat64);
    auto values = continuous.accessor<double, 2>();
    for (std::int64_t i = 0; i < order; ++i) {
        double const scale = static_cast<double>(2 * i + 1) / theta;
        for (std::int64_t j = 0; j < order; ++j) {
            values[i][j] = i < j || (i - j) % 2 == 0 ? -scale : scale;
        }
        values[i][order] = i % 2 == 0 ? scale : -scale;
    }
    auto const discrete = torch::matrix_exp(continuous);
    return {discrete.slice(0, 0, order).slice(1, 0, order).contiguous(),
            discrete.slice(0, 0, order).select(1, order).contiguous()};
}

torch::Tensor impulse_response(MemoryStep const& memory, std::int64_t steps) {
    std::vector<torch::Tensor> columns;
    auto state = memory.b;
    for (std::int64_t step = 0; step < steps; ++step) {
        columns.push_back(state);
        state = memory.a.mv(state);
    }
    return torch::stack(columns, 1);
}

torch::Tensor remember_stepwise(MemoryStep const& memory, torch::Tensor const& signal) {
    auto const transposed = to_device(memory.a.t().to(signal.scalar_type()), signal.device());
    auto const b = to_device(memory.b.to(signal.scalar_type()), signal.device());
    auto state = torch::zeros({signal.size(0), signal.size(2), b.size(0)}, signal.options());
    std::vector<torch::Tensor> states;
    for (auto const& now : signal.unbind(1)) {
        state = state.matmul(transposed) + now.unsqueeze(2) * b;
        states.push_back(state);
    }
    return torch::stack(states, 1).flatten(2);
}

namespace {

/// The next number that has no prime factors but 2, 3 and 5, for which transforms are fast.
std::int64_t fast_length(std::int64_t min) {
    for (auto length = min;; ++length) {
        auto rest = length;
        for (std::int64_t const factor : {2, 3, 5}) {
            while (rest % factor == 0) {
                rest /= factor;
            }
        }
        if (rest == 1) {
            return length;
        }
    }
}

} // namespace

torch::Tensor remember_at_once(torch::Tensor const& response, torch::Tensor const& signal) {
    auto const steps = signal.size(1);
    auto const length = fast_length(2 * steps);
    auto const of_response =
        torch::fft_rfft(to_device(response.to(signal.scalar_type()), signal.device()), length);
    auto const of_signal = torch::fft_rfft(signal.transpose(1, 2), length);
    auto const memories = torch::fft_irfft(of_signal.unsqueeze(2) * of_response, length);
    return memories.slice(3, 0, steps).permute({0, 3, 1, 2}).flatten(2);
}

LegendreMemoryImpl::LegendreMemoryImpl(std::int64_t order, double theta, bool stepwise)
    : memory_(legendre_memory(order, theta)), stepwise_(stepwise) {}

torch::Tensor LegendreMemoryImpl::forward(torch::Tensor const& signal) {
    // There are no transforms in 16 bits, and sums over hundreds of steps want more.
    auto const wide = signal.scalar_type() == torch::kFloat64 ? signal : signal.to(torch::kFloat32);
    if (stepwise_) {
        return remember_stepwise(memory_, wide);
    }
    auto const steps = wide.size(1);
    if (!response_.defined() || response_.size(1) < steps) {
        response_ = impulse_response(memory_, steps);
    }
    return remember_at_once(response_.slice(1, 0, steps), wide);
}

} // namespace lockstep::nn
