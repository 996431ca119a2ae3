#include "lockstep/nn/policy.hpp"
#include "lockstep/nn/recompute.hpp"

#include <torch/nn/modules/activation.h>

#include <cmath>

#include "../models.hpp"
#include "lstm_stretches.hpp"
#include "policy_layers.hpp"

namespace lockstep::nn {

namespace {

double cell_parameters(double inputs, double units) {
    return 4 * units * (inputs + units + 2);
}

/// Actor and critic with a memory each: an LSTM (Hochreiter, Schmidhuber, 1997) and a head after
/// it. What they remember of an environment lies contiguously: the actor's, the critic's.
class LstmPolicy : public Policy {
  public:
    LstmPolicy(config::OwnValues const& values, Interface const& interface)
        : LstmPolicy(values, interface, observation_size(interface)) {}

    PolicyOutput judge(PolicyInput const& input) override {
        auto const features = features_of(input.observations);
        auto actor_state = input.state.narrow(1, 0, 2 * units_);
        auto critic_state = input.state.narrow(1, 2 * units_, 2 * units_);
        auto const ends = stretch_ends(input.starts);
        auto const actor = run_cell(actor_memory_, features, input.starts, ends, actor_state);
        auto const critic = run_cell(critic_memory_, features, input.starts, ends, critic_state);
        return {actions_->of(run_head(actor_, actor, recompute_)),
                run_head(critic_, critic, recompute_).squeeze(-1),
                torch::cat({actor_state, critic_state}, 1)};
    }

    std::int64_t state_size() const override { return 4 * units_; }

    static double count(config::OwnValues const& values, Interface const& interface,
                        double features) {
        auto const units = static_cast<double>(values.integer("units", 1));
        return 2 * cell_parameters(features, units) +
               head_parameters(values, units, static_cast<double>(interface.outputs)) +
               head_parameters(values, units, 1) + action_parameters(interface);
    }

  protected:
    LstmPolicy(config::OwnValues const& values, Interface const& interface, std::int64_t features)
        : units_(values.integer("units", 1)), actor_memory_(features, units_),
          critic_memory_(features, units_), actor_(head(values, units_, interface.outputs, 0.01)),
          critic_(head(values, units_, 1, 1)),
          actions_(std::make_shared<ActionParameters>(interface)), recompute_(interface.recompute) {
        register_module("actor_memory", actor_memory_);
        register_module("critic_memory", critic_memory_);
        register_module("actor", actor_);
        register_module("critic", critic_);
        register_module("actions", actions_);
    }

    /// Shape  observations [sequences, steps, observation]; returns [sequences, steps, features]
    virtual torch::Tensor features_of(torch::Tensor const& observations) {
        return observations.flatten(2);
    }
    bool recomputes() const { return recompute_; }

  private:
    std::int64_t units_;
    torch::nn::LSTMCell actor_memory_;
    torch::nn::LSTMCell critic_memory_;
    torch::nn::Sequential actor_;
    torch::nn::Sequential critic_;
    std::shared_ptr<ActionParameters> actions_;
    bool recompute_;
};

/// The moments that an observation shows: {moments, numbers of each}.
std::pair<std::int64_t, std::int64_t> window_of(Interface const& interface) {
    auto const moments = interface.sample_shape.size() > 1 ? interface.sample_shape.front() : 1;
    return {moments, observation_size(interface) / moments};
}

/// The cascaded LSTM of Zou et al. (arXiv 2212.02721): one LSTM runs over the moments that an
/// observation shows; all its outputs go through three layers, and what comes out to an actor and
/// a critic that each have an LSTM of their own.
class CascadedLstmPolicy : public LstmPolicy {
  public:
    CascadedLstmPolicy(config::OwnValues const& values, Interface const& interface)
        : LstmPolicy(values, interface, values.integer("features", 1)),
          window_(window_of(interface)),
          series_(torch::nn::LSTMOptions(window_.second, values.integer("window-units", 1))
                      .batch_first(true)) {
        auto const features = values.integer("features", 1);
        auto width = window_.first * values.integer("window-units", 1);
        for (int layer = 1; layer <= 3; ++layer) {
            features_->push_back(concat_name("layer", layer),
                                 orthogonal_linear(width, features, std::sqrt(2.0)));
            features_->push_back(concat_name("tanh", layer), torch::nn::Tanh());
            width = features;
        }
        register_module("series", series_);
        register_module("features", features_);
    }

    static double count(config::OwnValues const& values, Interface const& interface) {
        auto const [moments, numbers] = window_of(interface);
        auto const units = static_cast<double>(values.integer("window-units", 1));
        auto const features = static_cast<double>(values.integer("features", 1));
        return cell_parameters(static_cast<double>(numbers), units) +
               (static_cast<double>(moments) * units + 1) * features +
               2 * (features + 1) * features + LstmPolicy::count(values, interface, features);
    }

  protected:
    torch::Tensor features_of(torch::Tensor const& observations) override {
        auto const steps = observations.size(1);
        auto const moments =
            observations.flatten(0, 1).flatten(1).unflatten(1, {window_.first, window_.second});
        Block block;
        block.forward = [series = series_, features = features_](torch::Tensor shown) mutable {
            auto const outputs = [&] {
                ExactLstm const exact_type(shown.device());
                auto const state = first_state(shown, series->options.hidden_size());
                return std::get<0>(series->forward(shown, std::tuple(state, state)));
            }();
            return features->forward(outputs.flatten(1));
        };
        block.parameters = series_->parameters();
        for (auto const& parameter : features_->parameters()) {
            block.parameters.push_back(parameter);
        }
        auto const found = recomputes() ? recomputed(block, moments) : block.forward(moments);
        return found.unflatten(0, {-1, steps});
    }

  private:
    /// Zeros, as the LSTM would make them itself, but without sizes: a trace holds for any batch.
    ///
    /// Shape  shown [windows, moments, numbers]; returns [1, windows, units]
    static torch::Tensor first_state(torch::Tensor const& shown, std::int64_t units) {
        auto const of_each = shown.flatten(1).narrow(1, 0, 1);
        return torch::zeros_like(of_each).expand({-1, units}).unsqueeze(0).contiguous();
    }

    static std::string concat_name(char const* name, int number) {
        return name + std::to_string(number);
    }

    std::pair<std::int64_t, std::int64_t> window_;
    torch::nn::LSTM series_;
    torch::nn::Sequential features_;
};

std::vector<config::OwnKey> memory_keys(std::string const& units, std::string const& hidden) {
    auto keys = head_keys(hidden);
    keys.push_back({"units", units, "width of the LSTMs in actor and critic"});
    return keys;
}

} // namespace

ModelKind lstm_policy_kind() {
    return {"lstm-policy", "policy whose actor and critic each have an LSTM, for the task ppo",
            memory_keys("256", "64, 64"),
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<LstmPolicy>(values, interface);
            },
            [](config::OwnValues const& values, Interface const& interface) {
                return LstmPolicy::count(values, interface,
                                         static_cast<double>(observation_size(interface)));
            }};
}

ModelKind clstm_policy_kind() {
    auto keys = memory_keys("512", "64, 64");
    keys.push_back(
        {"window-units", "128", "width of the LSTM over the time steps of an observation"});
    keys.push_back({"features", "128",
                    "width of each of the three layers after the LSTM over the time steps"});
    return {"clstm-policy",
            "policy with cascaded LSTMs over windows of observations, for the task ppo", keys,
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<CascadedLstmPolicy>(values, interface);
            },
            [](config::OwnValues const& values, Interface const& interface) {
                return CascadedLstmPolicy::count(values, interface);
            }};
}

} // namespace lockstep::nn
