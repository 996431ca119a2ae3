#include "rollout_plan.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

namespace lockstep::train {

RolloutPlan::RolloutPlan(config::Deck const& deck, task::PpoOptions const& options, bool remembers)
    : sequence_(!remembers             ? 1
                : options.sequence > 0 ? options.sequence
                                       : options.rollout_steps),
      transitions_(options.environments * options.rollout_steps), batch_(deck.data.batch),
      accumulate_(deck.optimizer.accumulate), replicas_(deck.run.replicas),
      ppo_epochs_(options.ppo_epochs), environments_(options.environments),
      episodes_(options.episodes), rollout_steps_(options.rollout_steps) {
    if (rollout_steps_ % sequence_ != 0 || batch_ % sequence_ != 0) {
        throw Error(ExitCode::usage,
                    {concat("task.sequence = ", sequence_),
                     concat("task.rollout-steps = ", rollout_steps_, " and data.batch = ", batch_,
                            " must be multiples of task.sequence, because the policy learns from "
                            "whole sequences"),
                     "Change task.sequence, task.rollout-steps or data.batch"});
    }
    if (transitions_ % (batch_ * accumulate_) != 0) {
        throw Error(
            ExitCode::usage,
            {concat("data.batch = ", batch_, " with optimizer.accumulate = ", accumulate_),
             concat("a replica collects task.environments x task.rollout-steps = ", transitions_,
                    " transitions, which is not a multiple of the ", batch_ * accumulate_,
                    " that one step uses"),
             concat("Set data.batch and optimizer.accumulate so that their product divides ",
                    transitions_)});
    }
}

std::int64_t RolloutPlan::max_steps(std::int64_t longest_episode) const {
    if (episodes_ == 0) {
        return 0;
    }
    auto const all = replicas_ * environments_;
    auto const moments = (episodes_ + all - 1) / all * longest_episode;
    return (moments + rollout_steps_ - 1) / rollout_steps_ * steps_per_epoch();
}

} // namespace lockstep::train
