#include "rollout_module.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "comm/collectives.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "comm/progress.hpp"
#include "comm/replica_tree.hpp"
#include "data/order.hpp"
#include "lockstep/base/error.hpp"
#include "step/batch_source.hpp"

#include <algorithm>
#include <cmath>

#include "evaluate_episodes.hpp"

namespace lockstep::train {

namespace {

constexpr std::size_t sums_of_episodes = 6;

/// The set's own episodes, which are not those of training.
std::uint64_t seed_of(DataModule::Set set, std::int64_t seed) {
    return random_key(static_cast<std::uint64_t>(seed), Stream::environment,
                      {set == DataModule::Set::validation ? std::uint64_t{1} : std::uint64_t{2}});
}

nn::Policy& policy_of(nn::Model& model, std::string const& name) {
    auto* const policy = dynamic_cast<nn::Policy*>(&model);
    if (policy == nullptr) {
        throw Error(ExitCode::usage, {concat("model.name = ", name),
                                      "the task needs a policy, but this model is not a policy",
                                      "Set model.name to mlp-policy, lstm-policy or clstm-policy"});
    }
    return *policy;
}

} // namespace

/// Hands out the batches of one step after the other.
class RolloutModule::Batches : public BatchSource {
  public:
    Batches(RolloutModule const& data_module, std::int64_t step)
        : data_module_(data_module), step_(step) {}

    task::Tensors next() override {
        auto const micros = data_module_.micro_batches(0);
        auto const replica = static_cast<std::size_t>(given_ / micros);
        auto const in_epoch = static_cast<std::size_t>(step_ % data_module_.steps_per_epoch());
        auto batch = data_module_.rollouts_[replica].batch(
            data_module_.sequences(step_, static_cast<int>(given_ % micros),
                                   data_module_.own_.first + static_cast<std::int64_t>(replica)),
            data_module_.scales_[in_epoch]);
        if (++given_ == micros * data_module_.own_.count) {
            given_ = 0;
            ++step_;
        }
        return batch;
    }

  private:
    RolloutModule const& data_module_;
    std::int64_t step_;
    int given_ = 0; ///< batches of this step
};

RolloutModule::RolloutModule(DataModuleParts const& parts)
    : world_(parts.world), deck_(parts.deck), options_(task::ppo_options(parts.deck.task)),
      policy_(policy_of(*parts.work.model, deck_.model.name)), make_(parts.work.environment),
      observation_shape_(parts.work.samples.inputs.front().shape.begin(),
                         parts.work.samples.inputs.front().shape.end()),
      own_(parts.own), device_(parts.device), plan_(deck_, options_, policy_.state_size() > 0) {
    scales_.resize(static_cast<std::size_t>(steps_per_epoch()));
    if (!trimmed(deck_.data.train).empty()) {
        fingerprint_ = data::Dataset({.files = deck_.data.train}).fingerprint();
    }
    for (int replica = own_.first; replica < own_.first + own_.count; ++replica) {
        rollouts_.emplace_back(Rollout::Options{.make = make_,
                                                .options = options_,
                                                .observation_shape = observation_shape_,
                                                .state_size = policy_.state_size(),
                                                .sequence = plan_.sequence(),
                                                .seed = static_cast<std::uint64_t>(deck_.run.seed),
                                                .replica = replica,
                                                .device = device_,
                                                .precision = deck_.precision});
    }
}

int RolloutModule::micro_batches(std::int64_t) const {
    return static_cast<int>(deck_.optimizer.accumulate);
}

std::int64_t RolloutModule::max_steps() const {
    return plan_.max_steps(make_(rl::Period::training)->spaces().longest_episode);
}

bool RolloutModule::is_exhausted(std::int64_t step) const {
    return options_.episodes > 0 && step > 0 && step % steps_per_epoch() == 0 &&
           episodes_ever_ >= static_cast<double>(options_.episodes);
}

std::unique_ptr<BatchSource> RolloutModule::batches(std::int64_t first_step, std::int64_t) {
    return std::make_unique<Batches>(*this, first_step);
}

/// The sequences of one micro-batch.
std::vector<std::int64_t> RolloutModule::sequences(std::int64_t step, int micro,
                                                   std::int64_t replica) const {
    auto const per_pass = plan_.steps_per_pass();
    auto const in_epoch = step % steps_per_epoch();
    data::Permutation const order(plan_.transitions() / plan_.sequence(),
                                  random_key(static_cast<std::uint64_t>(deck_.run.seed),
                                             Stream::order,
                                             {static_cast<std::uint64_t>(step / steps_per_epoch()),
                                              static_cast<std::uint64_t>(in_epoch / per_pass),
                                              static_cast<std::uint64_t>(replica)}));
    auto const count = deck_.data.batch / plan_.sequence();
    auto const first = (in_epoch % per_pass * deck_.optimizer.accumulate + micro) * count;
    std::vector<std::int64_t> which;
    for (std::int64_t i = 0; i < count; ++i) {
        which.push_back(order(first + i));
    }
    return which;
}

void RolloutModule::prepare(std::int64_t step) {
    if (step % steps_per_epoch() != 0) {
        return;
    }
    comm::in_phase(world_, comm::Phase::data, [&] {
        for (auto& rollout : rollouts_) {
            rollout.collect(policy_);
            comm::progressed(world_);
        }
    });
    sum_over_replicas(step);
}

/// What a replica adds: its episodes, and sums and squares of the advantages of each step.
std::vector<double> RolloutModule::sums_of(std::size_t replica, std::int64_t iteration) const {
    auto const& rollout = rollouts_[replica];
    auto const& episodes = rollout.episodes();
    std::vector<double> sums{episodes.count,          episodes.return_sum, episodes.return_minimum,
                             episodes.return_maximum, episodes.length_sum, rollout.episodes_ever()};
    std::vector<float> advantages(static_cast<std::size_t>(plan_.sequence()));
    for (std::int64_t i = 0; options_.normalise_advantages && i < steps_per_epoch(); ++i) {
        double sum = 0;
        double squares = 0;
        for (int micro = 0; micro < micro_batches(i); ++micro) {
            for (auto const which : sequences(iteration * steps_per_epoch() + i, micro,
                                              own_.first + static_cast<std::int64_t>(replica))) {
                rollout.advantages(which, advantages);
                for (double const each : advantages) {
                    sum += each;
                    squares += each * each;
                }
            }
        }
        sums.push_back(sum);
        sums.push_back(squares);
    }
    return sums;
}

void RolloutModule::sum_over_replicas(std::int64_t step) {
    auto const iteration = step / steps_per_epoch();
    auto const replicas = static_cast<std::size_t>(deck_.run.replicas);
    auto const count =
        sums_of_episodes +
        (options_.normalise_advantages ? 2 * static_cast<std::size_t>(steps_per_epoch()) : 0);
    std::vector<double> all(replicas * count, 0);
    for (std::size_t i = 0; i < rollouts_.size(); ++i) {
        auto const own = sums_of(i, iteration);
        std::copy(own.begin(), own.end(),
                  all.begin() + static_cast<std::ptrdiff_t>(
                                    (static_cast<std::size_t>(own_.first) + i) * count));
    }
    // Each is non-zero on one rank only, so these sums are exact.
    comm::all_reduce(world_, std::span(all), comm::Reduce::sum);

    episodes_ = {};
    episodes_ever_ = 0;
    for (std::size_t replica = 0; replica < replicas; ++replica) {
        auto const* const of = all.data() + replica * count;
        episodes_.add(rl::Episodes{of[0], of[1], of[2], of[3], of[4]});
        episodes_ever_ += of[5];
    }
    auto const total = [&](std::size_t which) {
        std::vector<double> values;
        for (std::size_t replica = 0; replica < replicas; ++replica) {
            values.push_back(all[replica * count + which]);
        }
        return comm::tree_sum(values);
    };
    auto const samples = static_cast<double>(samples_in_step(0));
    for (std::size_t i = 0; options_.normalise_advantages && i < scales_.size(); ++i) {
        auto const sums = sums_of_episodes + 2 * i;
        scales_[i] = rl::scale_of(total(sums), total(sums + 1), samples);
    }
}

std::map<std::string, double> RolloutModule::epoch_figures() const {
    std::map<std::string, double> figures{{"episodes", episodes_.count},
                                          {"episodes_total", episodes_ever_}};
    if (episodes_.count > 0) {
        figures["return"] = episodes_.return_sum / episodes_.count;
        figures["return_minimum"] = episodes_.return_minimum;
        figures["return_maximum"] = episodes_.return_maximum;
        figures["length"] = episodes_.length_sum / episodes_.count;
    }
    return figures;
}

std::int64_t RolloutModule::samples(Set set) const {
    return set == Set::training     ? plan_.transitions() * deck_.run.replicas
           : set == Set::validation ? options_.evaluation_episodes
                                    : options_.test_episodes;
}

std::optional<Evaluation> RolloutModule::measure(Set set, StopEvaluation const& stop,
                                                 LendParameters const& /*lend*/) {
    return evaluate_episodes(world_, policy_, make_,
                             {.episodes = samples(set),
                              .greedy = options_.greedy,
                              .seed = seed_of(set, deck_.run.seed),
                              .observation_shape = observation_shape_,
                              .device = device_,
                              .precision = deck_.precision,
                              .stop = stop});
}

std::vector<ReplicaArray> RolloutModule::state() {
    ReplicaArray floats{.name = "rollout", .type = h5::Type::f32};
    ReplicaArray reals{.name = "environments", .type = h5::Type::f64};
    for (auto& rollout : rollouts_) {
        floats.replicas.push_back(rollout.floats());
        reals.replicas.push_back(rollout.reals());
    }
    floats.elements = floats.replicas.front().size() / sizeof(float);
    reals.elements = reals.replicas.front().size() / sizeof(double);
    return {floats, reals};
}

void RolloutModule::restored(std::int64_t step) {
    for (auto& rollout : rollouts_) {
        rollout.restored();
    }
    // At the end of an iteration its advantages are done with, but not what was counted.
    sum_over_replicas(step > 0 ? step - 1 : 0);
}

std::unique_ptr<DataModule> make_rollout_module(DataModuleParts const& parts) {
    return std::make_unique<RolloutModule>(parts);
}

} // namespace lockstep::train
