#include "rollout.hpp"

#include "base/random.hpp"
#include "device/autocast.hpp"
#include "device/tensor_span.hpp"
#include "task/actions.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::train {

namespace {

std::vector<std::int64_t> followed_by(std::vector<std::int64_t> first,
                                      std::vector<std::int64_t> const& then) {
    first.insert(first.end(), then.begin(), then.end());
    return first;
}

} // namespace

Rollout::Rollout(Options const& parts)
    : options_(parts.options), observation_shape_(parts.observation_shape), device_(parts.device),
      precision_(parts.precision), set_({.make = parts.make,
                                         .environments = parts.options.environments,
                                         .seed = parts.seed,
                                         .replica = parts.replica}),
      sequence_(parts.sequence), per_environment_(options_.rollout_steps / sequence_),
      parameters_(set_.spaces().parameters()) {
    auto const steps = options_.rollout_steps;
    auto const width = set_.size();
    // Laid out twice: first without memory, to know how much it is.
    for (int round = 0; round < 2; ++round) {
        std::int64_t at = 0;
        observations_ = array(followed_by({steps, width}, observation_shape_), at);
        actions_ = array({steps, width, set_.spaces().action_size()}, at);
        log_probabilities_ = array({steps, width}, at);
        rewards_ = array({steps, width}, at);
        values_ = array({steps, width}, at);
        starts_ = array({steps + 1, width}, at);
        advantages_ = array({steps, width}, at);
        states_ = array({per_environment_, width, parts.state_size}, at);
        state_ = array({width, parts.state_size}, at);
        if (round == 0) {
            all_ = torch::zeros({at}, torch::kFloat32);
        }
    }
    reals_.resize(static_cast<std::size_t>(set_.state_size()));
    set_.save(reals_);
}

torch::Tensor Rollout::array(std::vector<std::int64_t> shape, std::int64_t& at) const {
    auto const count =
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    auto const first = at;
    at += count;
    return all_.defined() ? all_.narrow(0, first, count).view(shape) : torch::Tensor();
}

nn::PolicyOutput Rollout::judge(nn::Policy& policy, torch::Tensor const& observations,
                                torch::Tensor const& starts, torch::Tensor const& state) const {
    // Copied even on the CPU: where memory lies may change the order of a product's sums.
    auto const moved = [&](torch::Tensor const& tensor) {
        return tensor.to(device_, torch::kFloat32, false, true);
    };
    Autocast const autocast(precision_, device_);
    auto const output = nn::judge(
        policy, {moved(observations.unsqueeze(1)), moved(starts.unsqueeze(1)), moved(state)},
        parameters_);
    auto const back = [](torch::Tensor const& tensor) {
        return tensor.to(torch::kCPU, torch::kFloat32).contiguous();
    };
    return {back(output.actions), back(output.values), back(output.state)};
}

void Rollout::collect(nn::Policy& policy) {
    torch::NoGradGuard const no_grad;
    set_.forget_episodes();
    for (std::int64_t step = 0; step < options_.rollout_steps; ++step) {
        act(policy, step);
    }
    auto const last = torch::empty_like(observations_[0]);
    set_.observe(span_of(last));
    auto const starts = starts_[options_.rollout_steps];
    for (std::int64_t e = 0; e < set_.size(); ++e) {
        span_of(starts)[static_cast<std::size_t>(e)] = set_.at_start(e) ? 1 : 0;
    }
    auto const after = judge(policy, last, starts, state_).values;
    rl::estimate_advantages({options_.rollout_steps, set_.size(), span_of(rewards_),
                             span_of(values_), span_of(starts_), span_of(after)},
                            options_.discount, span_of(advantages_));
    set_.save(reals_);
}

void Rollout::act(nn::Policy& policy, std::int64_t step) {
    auto const width = static_cast<std::size_t>(set_.size());
    auto const starts = starts_[step];
    set_.observe(span_of(observations_[step]));
    for (std::size_t e = 0; e < width; ++e) {
        span_of(starts)[e] = set_.at_start(static_cast<std::int64_t>(e)) ? 1 : 0;
    }
    if (step % sequence_ == 0) {
        states_[step / sequence_].copy_(state_);
    }
    policy.set_random_key(random_key(set_.step_key(0), Stream::dropout));
    auto const judged = judge(policy, observations_[step], starts, state_);
    auto const parameters = span_of(judged.actions);
    auto const actions = span_of(actions_[step]);
    auto const each = actions.size() / width;
    auto const many = static_cast<std::size_t>(parameters_);
    for (std::size_t e = 0; e < width; ++e) {
        rl::Draws draws(set_.step_key(static_cast<std::int64_t>(e)));
        task::choose_action(parameters.subspan(e * many, many), set_.spaces().continuous, &draws,
                            actions.subspan(e * each, each));
    }
    auto const probabilities = task::action_probabilities(
        judged.actions, actions_[step].unsqueeze(1), set_.spaces().continuous);
    log_probabilities_[step].copy_(probabilities.log_probabilities.squeeze(1));
    values_[step].copy_(judged.values.squeeze(1));
    state_.copy_(judged.state);

    std::vector<rl::Outcome> outcomes(width);
    auto const last_seen = torch::zeros_like(observations_[step]);
    set_.step(actions, outcomes, span_of(last_seen));
    bool const cut = std::any_of(outcomes.begin(), outcomes.end(),
                                 [](rl::Outcome const& each) { return each.truncated; });
    // What would have followed an episode that was cut off has the value that the policy sees.
    auto const beyond =
        cut ? judge(policy, last_seen, torch::zeros_like(starts), state_).values : torch::Tensor();
    for (std::size_t e = 0; e < width; ++e) {
        auto reward = static_cast<float>(outcomes[e].reward * options_.reward_scale);
        if (outcomes[e].truncated) {
            reward += static_cast<float>(options_.discount.gamma) * span_of(beyond)[e];
        }
        span_of(rewards_[step])[e] = reward;
    }
}

void Rollout::advantages(std::int64_t which, std::span<float> into) const {
    auto const width = static_cast<std::size_t>(set_.size());
    auto const environment = static_cast<std::size_t>(which) % width;
    auto const first = static_cast<std::size_t>(which) / width * into.size();
    for (std::size_t step = 0; step < into.size(); ++step) {
        into[step] = span_of(advantages_)[(first + step) * width + environment];
    }
}

/// [steps, environments, …] as [sequences, steps, …], of which `which` are taken.
torch::Tensor Rollout::sequences_of(torch::Tensor const& of_steps,
                                    torch::Tensor const& which) const {
    std::vector<std::int64_t> const rest(of_steps.sizes().begin() + 2, of_steps.sizes().end());
    return of_steps
        .view(followed_by({per_environment_, sequence_, set_.size()}, rest)) //
        .transpose(1, 2)
        .reshape(followed_by({sequences(), sequence_}, rest))
        .index_select(0, which)
        .to(device_);
}

task::Tensors Rollout::batch(std::vector<std::int64_t> const& which, rl::Scale const& scale) const {
    torch::NoGradGuard const no_grad;
    auto const places = torch::tensor(which, torch::kInt64);
    auto const taken = [&](torch::Tensor const& of_steps) {
        return sequences_of(of_steps, places);
    };
    auto const advantages = taken(advantages_);
    auto const values = taken(values_);
    auto const normalised =
        (advantages - static_cast<float>(scale.mean)) * static_cast<float>(1 / scale.deviation);
    auto const states = states_.flatten(0, 1).index_select(0, places).to(device_);
    auto const field = [](torch::Tensor tensor) { return nn::Field{std::move(tensor), {}}; };
    return {nn::Fields({field(taken(observations_)),
                        field(taken(starts_.narrow(0, 0, options_.rollout_steps))), field(states)}),
            nn::Fields({field(taken(actions_)), field(taken(log_probabilities_)), field(normalised),
                        field(advantages + values), field(values)})};
}

std::span<std::byte> Rollout::floats() {
    return std::as_writable_bytes(span_of(all_));
}

std::span<std::byte> Rollout::reals() {
    return std::as_writable_bytes(std::span(reals_));
}

void Rollout::restored() {
    set_.restore(reals_);
}

} // namespace lockstep::train
