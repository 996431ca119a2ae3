#include "task/actions.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep::task {

namespace {

double const half_log_two_pi = 0.5 * std::log(2 * std::numbers::pi);

ActionProbabilities normal_probabilities(torch::Tensor const& parameters,
                                         torch::Tensor const& actions) {
    auto const parts = parameters.chunk(2, -1);
    auto const& log_deviation = parts[1];
    auto const off = (actions - parts[0]) * torch::exp(-log_deviation);
    return {(-0.5 * off.square() - log_deviation - half_log_two_pi).sum(-1),
            (log_deviation + (0.5 + half_log_two_pi)).sum(-1)};
}

/// The place of one of the logits, by the probabilities that they give.
float drawn(std::span<float const> logits, double position) {
    double const largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (auto const logit : logits) {
        sum += std::exp(static_cast<double>(logit) - largest);
    }
    double passed = 0;
    for (std::size_t place = 0; place + 1 < logits.size(); ++place) {
        passed += std::exp(static_cast<double>(logits[place]) - largest);
        if (position * sum < passed) {
            return static_cast<float>(place);
        }
    }
    return static_cast<float>(logits.size() - 1);
}

} // namespace

ActionProbabilities action_probabilities(torch::Tensor const& parameters,
                                         torch::Tensor const& actions, bool continuous) {
    if (continuous) {
        return normal_probabilities(parameters, actions);
    }
    auto const logs = torch::log_softmax(parameters, -1);
    auto const taken = torch::one_hot(actions.squeeze(-1).to(torch::kInt64), parameters.size(-1));
    return {(logs * taken).sum(-1), -(logs.exp() * logs).sum(-1)};
}

void choose_action(std::span<float const> parameters, bool continuous, rl::Draws* draws,
                   std::span<float> action) {
    if (!continuous) {
        action[0] =
            draws != nullptr
                ? drawn(parameters, draws->uniform())
                : static_cast<float>(std::max_element(parameters.begin(), parameters.end()) -
                                     parameters.begin());
        return;
    }
    for (std::size_t i = 0; i < action.size(); ++i) {
        double value = parameters[i];
        if (draws != nullptr) {
            value += std::exp(static_cast<double>(parameters[action.size() + i])) * draws->normal();
        }
        action[i] = static_cast<float>(value);
    }
}

} // namespace lockstep::task
