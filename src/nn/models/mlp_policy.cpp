#include "lockstep/nn/policy.hpp"

#include "../models.hpp"
#include "policy_layers.hpp"

namespace lockstep::nn {

namespace {

/// Actor and critic as two networks of fully connected layers, without memory.
class MlpPolicy : public Policy {
  public:
    MlpPolicy(config::OwnValues const& values, Interface const& interface)
        : actor_(head(values, observation_size(interface), interface.outputs, 0.01)),
          critic_(head(values, observation_size(interface), 1, 1)),
          actions_(std::make_shared<ActionParameters>(interface)), recompute_(interface.recompute) {
        register_module("actor", actor_);
        register_module("critic", critic_);
        register_module("actions", actions_);
    }

    PolicyOutput judge(PolicyInput const& input) override {
        auto const seen = input.observations.flatten(2);
        return {actions_->of(run_head(actor_, seen, recompute_)),
                run_head(critic_, seen, recompute_).squeeze(-1), input.state};
    }

  private:
    torch::nn::Sequential actor_;
    torch::nn::Sequential critic_;
    std::shared_ptr<ActionParameters> actions_;
    bool recompute_;
};

} // namespace

ModelKind mlp_policy_kind() {
    return {"mlp-policy",
            "policy whose actor and critic are fully connected layers, for the task ppo",
            head_keys("64, 64"),
            [](config::OwnValues const& values, Interface const& interface) {
                return std::make_shared<MlpPolicy>(values, interface);
            },
            [](config::OwnValues const& values, Interface const& interface) {
                auto const inputs = static_cast<double>(observation_size(interface));
                return head_parameters(values, inputs, static_cast<double>(interface.outputs)) +
                       head_parameters(values, inputs, 1) + action_parameters(interface);
            }};
}

} // namespace lockstep::nn
