#include "lockstep/train/optimizer.hpp"

#include <algorithm>

namespace lockstep::train {

SliceOptimizer::SliceOptimizer(config::Optimizer const& options, Layout const& layout,
                               torch::Device device, std::pair<std::int64_t, std::int64_t> slice)
    : options_(options) {
    auto const [first, last] = slice;
    for (std::size_t i = 0; i < layout.entries.size(); ++i) {
        auto const& entry = layout.entries[i];
        auto const next = i + 1 < layout.entries.size() ? layout.entries[i + 1].first : layout.size;
        auto const begin = std::max(first, entry.first);
        auto const end = std::min(last, next);
        if (begin >= end) {
            continue;
        }
        if (!runs_.empty() && runs_.back().decays == entry.decays) {
            runs_.back().count += end - begin;
        } else {
            runs_.push_back({begin - first, end - begin, entry.decays});
        }
    }
    if (options_.name == "adamw") {
        names_ = {"exp_avg", "exp_avg_sq"};
    } else if (options_.momentum > 0) {
        names_ = {"momentum"};
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
        states_.push_back(
            torch::zeros({last - first}, torch::TensorOptions(torch::kFloat32).device(device)));
    }
}

void SliceOptimizer::update(torch::Tensor const& parameters, torch::Tensor const& gradients,
                            double rate, std::int64_t step) {
    torch::NoGradGuard const no_grad;
    for (bool const decays : {true, false}) {
        std::vector<torch::Tensor> values;
        std::vector<torch::Tensor> slopes;
        std::vector<std::vector<torch::Tensor>> states(states_.size());
        std::vector<torch::Tensor> steps;
        for (auto const& run : runs_) {
            if (run.decays != decays) {
                continue;
            }
            values.push_back(parameters.narrow(0, run.first, run.count));
            slopes.push_back(gradients.narrow(0, run.first, run.count));
            for (std::size_t i = 0; i < states_.size(); ++i) {
                states[i].push_back(states_[i].narrow(0, run.first, run.count));
            }
            steps.push_back(torch::full({}, static_cast<double>(step),
                                        parameters.options().requires_grad(false)));
        }
        if (values.empty()) {
            continue;
        }
        double const decay = decays ? options_.weight_decay : 0;
        if (options_.name == "adamw") {
            at::_fused_adamw_(values, slopes, states[0], states[1], {}, steps, rate,
                              options_.betas[0], options_.betas[1], decay, options_.epsilon,
                              /*amsgrad=*/false, /*maximize=*/false);
        } else {
            at::_fused_sgd_(values, slopes,
                            states.empty() ? std::vector<torch::Tensor>{} : states[0], decay,
                            options_.momentum, rate, /*dampening=*/0, options_.nesterov,
                            /*maximize=*/false, /*is_first_step=*/false);
        }
    }
}

} // namespace lockstep::train
