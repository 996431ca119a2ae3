#include "policy_layers.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/recompute.hpp"

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

std::vector<config::OwnKey> head_keys(std::string const& hidden) {
    return {
        {"hidden", hidden, "widths of the hidden layers; actor and critic have the same widths"},
        {"activation", "tanh", "activation function between layers: tanh or relu"}};
}

} // namespace lockstep::nn
