#pragma once

#include "lockstep/config/deck.hpp"
#include "task/ppo.hpp"

#include <cstdint>

namespace lockstep::train {

/// How the transitions of an iteration are divided into steps: arithmetic on the deck.
class RolloutPlan {
  public:
    /// `remembers`: whether the policy has a memory, and learns from sequences.
    ///
    /// Throws  Error 64 when there are no whole steps, or no whole sequences
    RolloutPlan(config::Deck const& deck, task::PpoOptions const& options, bool remembers);

    std::int64_t sequence() const {
        return sequence_;
    } ///< steps that are trained on as one sequence
    std::int64_t transitions() const { return transitions_; } ///< of a replica in an iteration
    std::int64_t steps_per_pass() const { return transitions_ / (batch_ * accumulate_); }
    std::int64_t steps_per_epoch() const { return ppo_epochs_ * steps_per_pass(); }
    std::int64_t samples_in_step() const { return replicas_ * batch_ * accumulate_; }
    /// Steps after which task.episodes have ended, since every environment ends one within
    /// `longest_episode` steps; 0: the deck sets no such number.
    std::int64_t max_steps(std::int64_t longest_episode) const;

  private:
    std::int64_t sequence_;
    std::int64_t transitions_;
    std::int64_t batch_;
    std::int64_t accumulate_;
    std::int64_t replicas_;
    std::int64_t ppo_epochs_;
    std::int64_t environments_;
    std::int64_t episodes_;
    std::int64_t rollout_steps_;
};

} // namespace lockstep::train
