#include "base/memory.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "device/configure_torch.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "measure/measurement.hpp"
#include "measure/train_side/bench_training.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>

#include "../agreed_words.hpp"
#include "../train_side_options.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

using comm::Communicator;

constexpr std::int64_t warm_ups = 10;

/// The models of docs/performance.md, by name.
std::map<std::string, config::Model> models() {
    return {{"mlp18m", {"mlp", {{"hidden", "2048, 4096, 2048"}}}},
            {"cnn", {"cnn", {{"channels", "16, 32"}, {"hidden", "64"}}}}};
}

/// dp: two replicas of one rank concurrently, on threads.
std::int64_t replicas_of_rank(BenchStepTold const& told) {
    return told.variant == "dp" ? 2 : 1;
}

config::Deck deck_for(BenchStepTold const& told, int replicas) {
    config::Deck deck;
    deck.run.replicas = replicas;
    deck.data.batch = told.batch;
    deck.model = models().at(told.model);
    return deck;
}

/// As a run sets itself up; a plain loop has no deterministic operators.
void set_up(config::Deck const& deck, std::string const& variant) {
    keep_large_blocks();
    auto run = deck.run;
    run.deterministic = variant != "bare";
    train::configure_torch(run);
}

/// The value of each rank in each step, of one part of the step.
///
/// Collective  over `world`
/// Returns     [steps][ranks]
std::vector<std::vector<double>> gathered(Communicator const& world,
                                          std::vector<measure::StepTimes> const& own,
                                          double measure::StepTimes::*part) {
    auto const steps = static_cast<std::int64_t>(own.size());
    std::vector<std::int64_t> bounds;
    for (std::int64_t rank = 0; rank <= world.size(); ++rank) {
        bounds.push_back(rank * steps);
    }
    std::vector<double> flat(static_cast<std::size_t>(bounds.back()));
    std::transform(own.begin(), own.end(), flat.begin() + world.rank() * steps,
                   [=](measure::StepTimes const& times) { return times.*part; });
    comm::all_gather_slices(world, std::span(flat), bounds);
    std::vector<std::vector<double>> by_step(own.size());
    for (std::size_t at = 0; at < flat.size(); ++at) {
        by_step[at % own.size()].push_back(flat[at]);
    }
    return by_step;
}

double mean(std::vector<double> const& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
std::vector<double> each(std::vector<std::vector<double>> const& steps,
                         double (*over_ranks)(std::vector<double> const&)) {
    std::vector<double> values;
    std::transform(steps.begin(), steps.end(), std::back_inserter(values), over_ranks);
    return values;
}

/// Collective  over `world`
measure::Measurement summary(Communicator const& world, BenchStepTold const& told,
                             std::vector<measure::StepTimes> const& times,
                             measure::BenchTraining const& training) {
    auto const part = [&](double measure::StepTimes::*which) {
        return gathered(world, times, which);
    };
    measure::Measurement result{concat("step ", told.model),
                                told.variant,
                                training.parameter_bytes(),
                                world.size(),
                                each(part(&measure::StepTimes::whole), mean),
                                {}};
    auto const rate = 1 / measure::median(result.seconds);
    result.figures = {
        {"batch", static_cast<double>(told.batch)},
        {"steps_per_s", rate},
        {"samples_per_s",
         rate * static_cast<double>(told.batch * replicas_of_rank(told) * world.size())},
        {"forward_s", measure::median(each(part(&measure::StepTimes::forward), mean))},
        {"backward_s", measure::median(each(part(&measure::StepTimes::backward), mean))},
        {"communication_s", measure::median(each(part(&measure::StepTimes::communication), mean))},
        {"imbalance_s", measure::median(each(part(&measure::StepTimes::imbalance), mean))},
        {"update_s", measure::median(each(part(&measure::StepTimes::update), mean))},
        {"loss", training.loss()}};
    return result;
}

/// Collective  over `world`
measure::Measurement measure(Communicator const& world, BenchStepTold const& told) {
    auto const alone = Communicator::self();
    bool const native = told.variant == "native";
    auto const& together = told.variant == "engine" || native ? world : alone;
    auto deck = deck_for(told, together.size());
    deck.communication.reduction = native ? "native" : "ordered";
    if (told.variant == "dp") {
        deck.run.mode = "dp";
        deck.run.replicas = replicas_of_rank(told);
    }
    std::optional<measure::RandomBatches> batches;
    std::unique_ptr<measure::BenchTraining> training;
    double before = 0;
    comm::agree(world, "making random batches", [&] {
        set_up(deck, told.variant);
        batches.emplace((warm_ups + told.steps) * replicas_of_rank(told), told.batch, world.rank());
        before = static_cast<double>(proportional_memory());
    });
    training = told.variant == "bare" ? measure::bare_training(deck, *batches)
                                      : measure::engine_training(together, deck, *batches);
    std::vector<measure::StepTimes> times;
    comm::barrier(world); // nobody still makes batches while others measure
    for (std::int64_t step = -warm_ups; step < told.steps; ++step) {
        auto const taken = training->step();
        if (step >= 0) {
            times.push_back(taken);
        }
    }
    training->end();
    comm::barrier(world); // memory is shared with ranks that are all still here
    auto const after = static_cast<double>(proportional_memory());
    auto result = summary(world, told, times, *training);
    for (auto const& [key, bytes] :
         {std::pair("memory_before_bytes", before), std::pair("memory_bytes", after)}) {
        result.figures.emplace_back(key, comm::all_reduce(world, bytes, comm::Reduce::maximum));
    }
    return result;
}

} // namespace

ExitCode bench_step_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            BenchStepTold told;
            agreed_words(context.world, bench_step_options(told), invocation.arguments);
            auto const measured = measure(context.world, told);
            if (context.world.is_root()) {
                print(std::cout, measured, told.json);
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
