#include "policy_layers.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/recompute.hpp"

#include <ATen/autocast_mode.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>

#include <cmath>

namespace lockstep::nn {

torch::nn::Linear orthogonal_linear(std::int64_t from, std::int64_t to, double gain) {
    torch::nn::Linear layer(from, to);
    torch::NoGradGuard const no_grad;
    torch::nn::init::orthogonal_(layer->weight, gain);
    layer->bias.zero_();
    return layer;
}

torch::nn::Sequential head(config::OwnValues const& values, std::int64_t inputs,
                           std::int64_t outputs, double gain) {
    auto const activation = values.text("activation");
    if (activation != "tanh" && activation != "relu") {
        throw Error(ExitCode::usage, {concat("model.activation = ", activation),
                                      "expected tanh or relu", "Correct the value"});
    }
    torch::nn::Sequential layers;
    int number = 0;
    for (auto const hidden : values.integers("hidden", 1)) {
        ++number;
        layers->push_back(concat("hidden", number),
                          orthogonal_linear(inputs, hidden, std::sqrt(2.0)));
        if (activation == "tanh") {
            layers->push_back(concat("tanh", number), torch::nn::Tanh());
        } else {
            layers->push_back(concat("relu", number), torch::nn::ReLU());
        }
        inputs = hidden;
    }
    layers->push_back("output", orthogonal_linear(inputs, outputs, gain));
    return layers;
}

torch::Tensor run_head(torch::nn::Sequential& head, torch::Tensor const& inputs, bool recompute) {
    return recompute ? forward_recomputed(head, {0}, nullptr, inputs) : head->forward(inputs);
}

double head_parameters(config::OwnValues const& values, double inputs, double outputs) {
    double parameters = 0;
    for (auto const hidden : values.integers("hidden", 1)) {
        parameters += (inputs + 1) * static_cast<double>(hidden);
        inputs = static_cast<double>(hidden);
    }
    return parameters + (inputs + 1) * outputs;
}

ActionParameters::ActionParameters(Interface const& interface) {
    if (interface.continuous) {
        log_deviation_ =
            register_parameter("log_deviation", torch::zeros({interface.outputs}, torch::kFloat32));
    }
}

torch::Tensor ActionParameters::of(torch::Tensor const& actor) const {
    return log_deviation_.defined()
               ? torch::cat({actor, log_deviation_.to(actor.scalar_type()).expand_as(actor)}, -1)
               : actor;
}

double action_parameters(Interface const& interface) {
    return interface.continuous ? static_cast<double>(interface.outputs) : 0;
}

std::int64_t observation_size(Interface const& interface) {
    std::int64_t size = 1;
    for (auto const extent : interface.sample_shape) {
        size *= extent;
    }
    return size;
}

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

std::vector<config::OwnKey> head_keys(std::string const& hidden) {
    return {{"hidden", hidden, "widths of the hidden layers, of actor and critic each"},
            {"activation", "tanh", "activation between layers: tanh or relu"}};
}

} // namespace lockstep::nn
