#include "task/ppo.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/policy.hpp"
#include "lockstep/rl/environment.hpp"
#include "task/actions.hpp"

#include "tasks.hpp"

namespace lockstep::task {

namespace {

/// Proximal policy optimisation (Schulman et al., arXiv 1707.06347) on rollouts: with
/// r = p_new(a) / p_old(a), advantages A, returns R and values V,
///   sum max(-A r, -A clip(r, 1 - c, 1 + c))
///       + w_V 0.5 max((V - R)^2, (V_old + clip(V - V_old, -c, c) - R)^2) - w_H H.
class Ppo : public Task {
  public:
    Ppo(config::OwnValues const& values, Samples const& samples) : options_(values) {
        if (!samples.spaces) {
            throw Error(
                ExitCode::usage,
                {"task.kind = ppo", "the task needs an environment",
                 "Set task.environment to one of the environments that lockstep tasks lists"});
        }
        spaces_ = *samples.spaces;
    }

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto const input = [&](std::size_t which) { return batch.inputs[which].values; };
        auto const target = [&](std::size_t which) { return batch.targets[which].values; };
        auto& policy = policy_of(model);
        auto const judged = nn::judge(
            policy,
            {input(PpoFields::observations), input(PpoFields::starts), input(PpoFields::state)},
            spaces_.parameters());
        auto const probabilities = action_probabilities(
            judged.actions.to(torch::kFloat32), target(PpoFields::actions), spaces_.continuous);
        auto const log_ratio =
            probabilities.log_probabilities - target(PpoFields::log_probabilities);
        auto const ratio = log_ratio.exp();
        auto const advantages = target(PpoFields::advantages);
        auto const policy_loss =
            torch::max(-advantages * ratio,
                       -advantages * ratio.clamp(1 - options_.clip, 1 + options_.clip))
                .sum();
        auto const value_loss = value_loss_of(judged.values.to(torch::kFloat32), batch);
        auto const entropy = probabilities.entropy.sum();
        auto loss =
            policy_loss + options_.value_weight * value_loss - options_.entropy_weight * entropy;
        torch::NoGradGuard const no_grad;
        auto const number = [](torch::Tensor const& sum) { return sum.to(torch::kFloat64); };
        return {std::move(loss), static_cast<double>(advantages.numel()),
                // The KL divergence by the estimator that is never negative (Schulman, 2020).
                torch::stack({number(policy_loss), number(value_loss), number(entropy),
                              number((ratio - 1 - log_ratio).sum()),
                              number((ratio - 1).abs().gt(options_.clip).sum())})};
    }

    std::vector<std::string> figures() const override {
        return {"policy_loss", "value_loss", "entropy", "kl", "clipped"};
    }

    Tally evaluate(nn::Model&, Tensors const&) const override {
        throw Error(ExitCode::software,
                    {"task ppo was asked to evaluate a batch", "it can evaluate only episodes",
                     "This is a bug; please report it"});
    }
    Predicts predicts() const override { return Predicts::nothing; }
    std::int64_t outputs() const override { return spaces_.actions; }
    Metrics metrics(Tally const&) const override { return {}; }

  private:
    static nn::Policy& policy_of(nn::Model& model) {
        auto* const policy = dynamic_cast<nn::Policy*>(&model);
        if (policy == nullptr) {
            throw Error(ExitCode::usage,
                        {"task.kind = ppo",
                         "the task needs a policy, but the model is not a policy",
                         "Set model.name to mlp-policy, lstm-policy or clstm-policy"});
        }
        return *policy;
    }

    torch::Tensor value_loss_of(torch::Tensor const& values, Tensors const& batch) const {
        auto const returns = batch.targets[PpoFields::returns].values;
        auto const before = batch.targets[PpoFields::values].values;
        auto squares = (values - returns).square();
        if (options_.clip_values) {
            auto const near = before + (values - before).clamp(-options_.clip, options_.clip);
            squares = torch::max(squares, (near - returns).square());
        }
        return 0.5 * squares.sum();
    }

    PpoOptions options_;
    rl::Spaces spaces_;
};

std::vector<config::OwnKey> ppo_keys() {
    std::vector<config::OwnKey> keys{
        {"environment", "cart-pole", "environment in which the agent acts"},
        {"environments", "4", "number of environments per replica; these are stepped together"},
        {"rollout-steps", "128",
         "steps of each environment per iteration, after which the policy learns"},
        {"passes", "4", "PPO epochs over the collected transitions"},
        {"sequence", "0", "sequence length for recurrent policies; 0: rollout-steps"},
        {"gamma", "0.99", "discount factor of later rewards"},
        {"lambda", "0.95", "lambda of generalised advantage estimation"},
        {"observation-scale", "1",
         "factor on observations: one number for all values, or a number for each value"},
        {"reward-scale", "1",
         "factor on rewards in training; returns are reported without this factor"},
        {"clip", "0.2",
         "the probability ratio is clipped to [1 - clip, 1 + clip], and the change of a value "
         "estimate to [-clip, clip]"},
        {"clip-values", "true", "clip the change of value estimates, too"},
        {"value-weight", "0.5", "weight of the value loss"},
        {"entropy-weight", "0.01", "weight of the entropy bonus"},
        {"normalise-advantages", "true", "normalise advantages over the global batch of each step"},
        {"episodes", "0", "episodes over all replicas after which the run ends; 0: no limit"},
        {"evaluation-episodes", "20", "episodes per validation; 0: none"},
        {"test-episodes", "100", "test episodes after training; 0: none"},
        {"greedy", "true",
         "evaluate with the most probable actions; false: evaluate with actions that are drawn as "
         "in training"}};
    for (auto const& kind : rl::environment_kinds()) {
        keys.insert(keys.end(), kind.keys.begin(), kind.keys.end());
    }
    return keys;
}

} // namespace

PpoOptions::PpoOptions(config::OwnValues const& values)
    : environments(values.integer("environments", 1)),
      rollout_steps(values.integer("rollout-steps", 1)), ppo_epochs(values.integer("passes", 1)),
      sequence(values.integer("sequence", 0)), discount{values.number("gamma", 0, 1),
                                                        values.number("lambda", 0, 1)},
      reward_scale(values.number("reward-scale", 0, 1e9)), clip(values.number("clip", 0, 1)),
      clip_values(values.boolean("clip-values")),
      value_weight(values.number("value-weight", 0, 1e9)),
      entropy_weight(values.number("entropy-weight", 0, 1e9)),
      normalise_advantages(values.boolean("normalise-advantages")),
      episodes(values.integer("episodes", 0)),
      evaluation_episodes(values.integer("evaluation-episodes", 0)),
      test_episodes(values.integer("test-episodes", 0)), greedy(values.boolean("greedy")) {}

PpoOptions ppo_options(config::Task const& chosen) {
    return PpoOptions(config::OwnValues("task", chosen.own, ppo_keys()));
}

std::optional<TaskKind> ppo_kind() {
    return TaskKind{
        .name = "ppo",
        .meaning = "proximal policy optimisation (PPO) in one of these environments: " +
                   [] {
                       std::vector<std::string> names;
                       for (auto const& kind : rl::environment_kinds()) {
                           names.push_back(kind.name);
                       }
                       return joined(names, ", ");
                   }(),
        .keys = ppo_keys(),
        .metrics = {{"return", true}, {"length", true}, {"loss", false}},
        .make = [](config::OwnValues const& values,
                   Samples const& samples) { return std::make_unique<Ppo>(values, samples); },
        .environment =
            [](config::OwnValues const& values, std::string const& files) {
                return rl::scaled(rl::open_environment(values.text("environment"), {values, files}),
                                  values.numbers("observation-scale", -1e9, 1e9));
            }};
}

} // namespace lockstep::task
