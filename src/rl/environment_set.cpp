#include "rl/environment_set.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::rl {

void Episodes::add(double reward_sum, double length) {
    add(Episodes{1, reward_sum, reward_sum, reward_sum, length});
}

void Episodes::add(Episodes const& other) {
    if (other.count == 0) {
        return;
    }
    return_minimum =
        count == 0 ? other.return_minimum : std::min(return_minimum, other.return_minimum);
    return_maximum =
        count == 0 ? other.return_maximum : std::max(return_maximum, other.return_maximum);
    count += other.count;
    return_sum += other.return_sum;
    length_sum += other.length_sum;
}

EnvironmentSet::EnvironmentSet(Options const& parts)
    : seed_(parts.seed), replica_(static_cast<std::uint64_t>(parts.replica)) {
    for (std::int64_t i = 0; i < parts.environments; ++i) {
        environments_.push_back(parts.make(parts.period));
        running_.emplace_back();
        begin(static_cast<std::size_t>(i));
    }
}

std::uint64_t EnvironmentSet::key(std::size_t environment, std::uint64_t what) const {
    return random_key(
        seed_, Stream::environment,
        {replica_, environment, static_cast<std::uint64_t>(running_[environment].episode), what});
}

void EnvironmentSet::begin(std::size_t environment) {
    environments_[environment]->reset(key(environment, 0));
}

bool EnvironmentSet::at_start(std::int64_t environment) const {
    return running_[static_cast<std::size_t>(environment)].steps == 0;
}

std::uint64_t EnvironmentSet::step_key(std::int64_t environment) const {
    auto const at = static_cast<std::size_t>(environment);
    return key(at, 1 + static_cast<std::uint64_t>(running_[at].steps));
}

void EnvironmentSet::step(std::span<float const> actions, std::span<Outcome> outcomes,
                          std::span<float> last_seen) {
    auto const width = static_cast<std::size_t>(spaces().action_size());
    auto const seen = static_cast<std::size_t>(spaces().observation);
    for (std::size_t i = 0; i < environments_.size(); ++i) {
        auto& environment = *environments_[i];
        auto& running = running_[i];
        auto& outcome = outcomes[i];
        outcome = environment.step(actions.subspan(i * width, width));
        if (!std::isfinite(outcome.reward)) {
            throw_not_finite(i, "reward");
        }
        running.reward_sum += outcome.reward;
        running.steps += 1;
        if (!outcome.terminated && running.steps >= static_cast<double>(spaces().longest_episode)) {
            outcome.truncated = true;
        }
        if (outcome.truncated) {
            environment.observe(last_seen.subspan(i * seen, seen));
        }
        if (outcome.terminated || outcome.truncated) {
            episodes_.add(running.reward_sum, running.steps);
            running = {running.episode + 1, 0, 0};
            begin(i);
        }
    }
}

double EnvironmentSet::episodes_ever() const {
    double ended = 0;
    for (auto const& running : running_) {
        ended += running.episode;
    }
    return ended;
}

void EnvironmentSet::observe(std::span<float> into) const {
    auto const seen = static_cast<std::size_t>(spaces().observation);
    for (std::size_t i = 0; i < environments_.size(); ++i) {
        auto const own = into.subspan(i * seen, seen);
        environments_[i]->observe(own);
        if (!std::all_of(own.begin(), own.end(), [](float each) { return std::isfinite(each); })) {
            throw_not_finite(i, "observation");
        }
    }
}

void EnvironmentSet::throw_not_finite(std::size_t environment, char const* what) const {
    auto const& running = running_[environment];
    throw Error(ExitCode::data,
                {concat("the ", what, " in environment ", environment, " of replica ", replica_,
                        " is not finite in episode ", static_cast<std::int64_t>(running.episode),
                        ", step ", static_cast<std::int64_t>(running.steps)),
                 "a policy cannot learn from values that are not finite",
                 "Check the environment's data, and whether the environment bounds the actions"});
}

std::int64_t EnvironmentSet::state_size() const {
    auto const each = environments_.front()->state().size() + 3;
    return static_cast<std::int64_t>(5 + environments_.size() * each);
}

void EnvironmentSet::save(std::span<double> into) const {
    auto at = into.begin();
    for (auto const value : {episodes_.count, episodes_.return_sum, episodes_.return_minimum,
                             episodes_.return_maximum, episodes_.length_sum}) {
        *at++ = value;
    }
    for (std::size_t i = 0; i < environments_.size(); ++i) {
        *at++ = running_[i].episode;
        *at++ = running_[i].steps;
        *at++ = running_[i].reward_sum;
        auto const state = environments_[i]->state();
        at = std::copy(state.begin(), state.end(), at);
    }
}

void EnvironmentSet::restore(std::span<double const> from) {
    auto at = from.begin();
    for (auto* const value : {&episodes_.count, &episodes_.return_sum, &episodes_.return_minimum,
                              &episodes_.return_maximum, &episodes_.length_sum}) {
        *value = *at++;
    }
    for (std::size_t i = 0; i < environments_.size(); ++i) {
        running_[i] = {at[0], at[1], at[2]};
        auto const state = environments_[i]->state();
        std::copy_n(at + 3, state.size(), state.begin());
        at += static_cast<std::ptrdiff_t>(3 + state.size());
    }
}

} // namespace lockstep::rl
