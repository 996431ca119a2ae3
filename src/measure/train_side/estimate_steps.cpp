#include "measure/train_side/estimate_steps.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/communicator.hpp"
#include "measure/measurement.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iomanip>
#include <iostream>

namespace lockstep::measure {

namespace {

using comm::Communicator;

constexpr double timeout_seconds = 300;

double median_of(std::vector<train::DryRunStep> const& steps, double train::DryRunStep::*part) {
    std::vector<double> values;
    values.reserve(steps.size());
    for (auto const& step : steps) {
        values.push_back(step.*part);
    }
    return median(values);
}

comm::StepParts parts_of(std::vector<train::DryRunStep> const& steps) {
    auto const part = [&](double train::DryRunStep::*which) { return median_of(steps, which); };
    using Step = train::DryRunStep;
    comm::StepParts parts{.compute =
                              part(&Step::data) + part(&Step::forward) + part(&Step::backward),
                          .backward = part(&Step::backward),
                          .sum = part(&Step::exposed),
                          .update = part(&Step::update),
                          .imbalance = part(&Step::imbalance)};
    parts.rest = std::max(
        part(&Step::whole) - parts.compute - parts.sum - parts.update - parts.imbalance, 0.0);
    return parts;
}

template <class Step>
comm::StepParts median_of_steps(std::int64_t steps, Step const& take_step) {
    constexpr int warm_ups = 3;
    std::vector<train::DryRunStep> taken;
    for (std::int64_t step = -warm_ups; step < steps; ++step) {
        auto const own = take_step();
        if (step >= 0) {
            taken.push_back(own);
        }
    }
    return parts_of(taken);
}

} // namespace

comm::StepParts median_step(train::DryRun& dry_run, std::int64_t steps) {
    return median_of_steps(steps, [&] { return dry_run.step(); });
}

comm::StepParts median_step_of_hosts(Communicator const& all, train::DryRun& dry_run,
                                     std::int64_t steps) {
    return median_of_steps(steps, [&] {
        train::DryRunStep own;
        auto const failure = comm::failure_of([&] { own = dry_run.step(); });
        // Asleep, as in training: hosts may share cores.
        comm::barrier_with_deadline(all, timeout_seconds);
        comm::agree_on(all, "measuring a step", failure);
        auto const slowest = comm::all_reduce(all, own.whole, comm::Reduce::maximum);
        own.imbalance += slowest - own.whole;
        own.whole = slowest;
        return own;
    });
}

BatchTrial try_batch(config::Deck deck, std::int64_t total, int replicas, double other_s) {
    BatchTrial trial;
    trial.total = total;
    if (auto const unit = replicas * deck.optimizer.accumulate; total % unit != 0) {
        trial.problem = concat("not a multiple of ", unit, " (replicas x accumulate)");
        return trial;
    }
    deck.data.batch = total / replicas / deck.optimizer.accumulate;
    try {
        auto const self = Communicator::self();
        train::DryRun dry_run(self, deck);
        auto const step = median_step(dry_run, 3);
        trial.memory = dry_run.peak_bytes();
        trial.samples_per_s = static_cast<double>(total) / (whole(step) + other_s);
    } catch (...) {
        trial.problem = current_error().text().what;
    }
    return trial;
}

void print_json(std::vector<BatchTrial> const& trials) {
    for (auto const& trial : trials) {
        nlohmann::ordered_json const line{{"total_batch", trial.total},
                                          {"memory_bytes", trial.memory},
                                          {"samples_per_s", trial.samples_per_s},
                                          {"problem", trial.problem}};
        std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    }
}

void print_batches(std::vector<BatchTrial> const& trials, int replicas, double available) {
    std::cout << "\n"
              << std::right << std::setw(12) << "total batch" << std::setw(14) << "per replica"
              << std::setw(18) << "memory per rank" << std::setw(13) << "samples/s"
              << "\n";
    for (auto const& trial : trials) {
        std::cout << std::right << std::setw(12) << trial.total << std::setw(14)
                  << trial.total / replicas;
        if (trial.problem.empty()) {
            std::cout << std::setw(18) << bytes_text(trial.memory) << std::setw(13)
                      << fixed(trial.samples_per_s, 0) << "\n";
        } else {
            std::cout << "  " << trial.problem << "\n";
        }
    }
    std::vector<BatchTrial> good;
    std::copy_if(trials.begin(), trials.end(), std::back_inserter(good),
                 [](auto const& trial) { return trial.problem.empty(); });
    if (good.size() < 2 || good.back().memory <= good.front().memory) {
        std::cout << "The largest batch that fits cannot be estimated: name sizes in --batches "
                     "that differ more.\n";
        return;
    }
    auto const per_sample = static_cast<double>(good.back().memory - good.front().memory) /
                            static_cast<double>(good.back().total - good.front().total);
    auto const base = static_cast<double>(good.front().memory) -
                      per_sample * static_cast<double>(good.front().total);
    auto const largest =
        static_cast<std::int64_t>(std::max((0.9 * available - base) / per_sample, 0.0));
    std::cout << "Extrapolated linearly, a total batch of "
              << count_text(largest / replicas * replicas) << " samples fits into 90 % of the "
              << bytes_text(static_cast<std::uint64_t>(available)) << " available to a rank.\n";
}

} // namespace lockstep::measure
