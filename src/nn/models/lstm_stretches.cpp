#include "lstm_stretches.hpp"

#include "lockstep/nn/recompute.hpp"

#include <ATen/autocast_mode.h>

namespace lockstep::nn {

ExactLstm::ExactLstm(torch::Device device) {
    auto const type = device.type();
    if (device.is_cpu() && at::autocast::is_autocast_enabled(type) &&
        at::autocast::get_autocast_dtype(type) == torch::kFloat16) {
        without_autocast_.emplace(c10::DispatchKey::AutocastCPU);
    }
}

std::vector<std::int64_t> stretch_ends(torch::Tensor const& starts) {
    auto const begins = starts.ne(0).any(0).to(torch::kCPU).contiguous();
    auto const* const at = begins.const_data_ptr<bool>();
    std::vector<std::int64_t> ends;
    for (std::int64_t step = 1; step < starts.size(1); ++step) {
        if (at[step]) {
            ends.push_back(step);
        }
    }
    ends.push_back(starts.size(1));
    return ends;
}

torch::Tensor run_cell(torch::nn::LSTMCell& cell, torch::Tensor const& inputs,
                       torch::Tensor const& starts, std::vector<std::int64_t> const& ends,
                       torch::Tensor& state) {
    auto const units = state.size(1) / 2;
    auto shown = state.narrow(1, 0, units);
    auto kept = state.narrow(1, units, units);
    std::vector<torch::Tensor> const parameters{cell->weight_ih, cell->weight_hh, cell->bias_ih,
                                                cell->bias_hh};
    auto const exact =
        inputs.to(cell->weight_ih.scalar_type()); // also where layers before it are in 16 bits
    std::vector<torch::Tensor> outputs;
    std::int64_t first = 0;
    for (auto const end : ends) {
        auto const continues = 1 - starts.narrow(1, first, 1);
        auto const before = [&](torch::Tensor const& part) {
            return (part * continues).unsqueeze(0).contiguous();
        };
        ExactLstm const exact_type(exact.device());
        auto [all, last_shown, last_kept] =
            torch::lstm(exact.narrow(1, first, end - first).contiguous(),
                        {before(shown), before(kept)}, parameters, /*has_biases=*/true,
                        /*num_layers=*/1, /*dropout=*/0, /*train=*/cell->is_training(),
                        /*bidirectional=*/false, /*batch_first=*/true);
        outputs.push_back(all);
        shown = last_shown.squeeze(0);
        kept = last_kept.squeeze(0);
        first = end;
    }
    state = torch::cat({shown, kept}, 1);
    return torch::cat(outputs, 1);
}

} // namespace lockstep::nn
