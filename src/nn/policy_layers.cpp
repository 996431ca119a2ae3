#include "policy_layers.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>

#include <cmath>

namespace lockstep::nn {

torch::Tensor Policy::forward(Fields const& fields) {
    auto const inputs = fields.only();
    auto const count = inputs.size(0);
    auto const output =
        judge({inputs.reshape({count, 1, -1}), torch::ones({count, 1}, inputs.options()),
               torch::zeros({count, state_size()}, inputs.options())});
    return torch::cat({output.actions.squeeze(1), output.values}, 1);
}

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
                                      "there are tanh and relu", "Correct the value"});
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

torch::Tensor run_cell(torch::nn::LSTMCell& cell, torch::Tensor const& inputs,
                       torch::Tensor const& starts, torch::Tensor& state) {
    auto const units = state.size(1) / 2;
    auto const goes_on = (1 - starts).unsqueeze(-1);
    auto shown = state.narrow(1, 0, units);
    auto kept = state.narrow(1, units, units);
    std::vector<torch::Tensor> outputs;
    for (std::int64_t step = 0; step < inputs.size(1); ++step) {
        auto const mask = goes_on.select(1, step);
        std::tie(shown, kept) =
            cell->forward(inputs.select(1, step), std::make_tuple(shown * mask, kept * mask));
        outputs.push_back(shown);
    }
    state = torch::cat({shown, kept}, 1);
    return torch::stack(outputs, 1);
}

std::vector<config::OwnKey> head_keys(std::string const& hidden) {
    return {{"hidden", hidden, "widths of the hidden layers, of actor and critic each"},
            {"activation", "tanh", "between layers: tanh or relu"}};
}

} // namespace lockstep::nn
