#include "training_records.hpp"

#include "base/hash.hpp"
#include "base/text.hpp"
#include "batches/privacy_rules.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "device/device_memory.hpp"
#include "step/add_to.hpp"
#include "step/histograms.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace lockstep::train {

namespace {

/// The mean; of no samples at all, which a step may have drawn, it is 0.
double mean(double sum, double weight) {
    return weight > 0 ? sum / weight : 0;
}

} // namespace

void TrainingRecords::end_step(StepOutcome const& outcome, double step_s) {
    auto const in_epoch = parts_.course.in_epoch(parts_.progress.step);
    auto const samples = parts_.data.samples_in_step(in_epoch);
    count(outcome, samples, step_s);
    tell_step(outcome, samples, step_s);
}

void TrainingRecords::count(StepOutcome const& outcome, std::int64_t samples, double step_s) {
    auto& progress = parts_.progress;
    ++progress.step;
    progress.epoch_loss_sum += outcome.loss_sum;
    progress.epoch_weight += outcome.weight;
    add_to(progress.epoch_figures, outcome.figures);
    add_to(progress.epoch_counts, outcome.counts);
    auto& totals = parts_.totals;
    ++totals.steps;
    totals.samples += samples;
    totals.training_s += step_s;
    totals.communication_s += outcome.exchange.exposed_s;
    totals.imbalance_s += outcome.exchange.imbalance_s;
    totals.exchanged_bytes += outcome.exchange.bytes;
    epoch_samples_ += samples;
    parts_.walltime.step_took(step_s);
    stragglers_.add(outcome.waited_s, step_s);
}

void TrainingRecords::tell_step(StepOutcome const& outcome, std::int64_t samples, double step_s) {
    auto const& monitor = parts_.facts.deck().monitor;
    auto const& course = parts_.course;
    auto const step = parts_.progress.step;
    bool const logged =
        step % monitor.log_every == 0 || step == 1 || course.is_done(parts_.progress);
    auto const rate = course.rate(step - 1, parts_.progress.plateau.reductions);
    auto const straggler =
        logged ? stragglers_.report(waits_of_ranks(parts_.facts.world, stragglers_.waited_s()))
               : Stragglers::Report{};
    if (logged) {
        parts_.resources.sample();
    }
    auto const memory = logged ? device_memory(parts_.facts.device) : DeviceMemory{};
    bool const hashed = monitor.weight_hash == "true" ||
                        (monitor.weight_hash == "auto" && !parts_.engine->lends());
    auto const weights = logged && hashed
                             ? std::optional(parts_.engine->replica_check().hash())
                             : std::nullopt;
    parts_.observers.tell(Step{.step = step,
                               .total_steps = course.total_steps(),
                               .epoch = course.place(step),
                               .loss = mean(outcome.loss_sum, outcome.weight),
                               .figures = figures_of(outcome.figures, outcome.weight),
                               .learning_rate = rate,
                               .grad_norm = outcome.grad_norm,
                               .samples = samples,
                               .logged = logged,
                               .step_s = step_s,
                               .data_s = outcome.local.data,
                               .forward_s = outcome.local.forward,
                               .backward_s = outcome.local.backward,
                               .communication_s = outcome.exchange.exposed_s,
                               .imbalance_s = outcome.exchange.imbalance_s,
                               .hidden_s = outcome.exchange.hidden_s,
                               .straggler = straggler.rank,
                               .straggler_s = straggler.late_s,
                               .straggler_stays = straggler.stays,
                               .exchanged_bytes = outcome.exchange.bytes,
                               .messages = outcome.exchange.messages,
                               .update_s = outcome.update_s,
                               .graph_replays = outcome.graphs.replayed,
                               .eager_passes = outcome.graphs.eager,
                               .loss_scale = outcome.loss_scale,
                               .skipped = outcome.skipped,
                               .weight_hash = weights ? hex(weights->value) : std::string(),
                               .diverged = weights ? weights->diverged : std::string(),
                               .device_memory = memory.allocated,
                               .device_memory_reserved = memory.reserved,
                               .device_memory_peak = memory.peak});
    if (logged && parts_.facts.deck().fault_tolerance.straggler_factor > 0) {
        judge(straggler);
    }
    if (weights && !weights->diverged.empty() && !std::exchange(diverged_, true)) {
        parts_.observers.tell(
            Remark{concat("warning: after step ", step, " the weights of ", weights->diverged)});
    }
}

/// Rank 0's clock counts.
void TrainingRecords::judge(Stragglers::Report const& straggler) {
    auto const& world = parts_.facts.world;
    auto const allowed = parts_.facts.deck().fault_tolerance.straggler_factor;
    bool const slow = world.is_root() && straggler.stays && straggler.factor > allowed;
    auto const rank = comm::all_reduce(world, slow ? straggler.rank : -1, comm::Reduce::maximum);
    if (rank < 0) {
        return;
    }
    auto factor = straggler.factor;
    comm::broadcast(world, std::span(&factor, 1));
    too_slow_.emplace(
        ExitCode::rank_lost,
        ErrorText{concat("the other ranks wait for it: steps take ", significant(factor, 2),
                         " times as long as they would without it"),
                  concat("fault-tolerance.straggler-factor = ", allowed),
                  "Look at that host: other processes, its temperature, its network"},
        rank,
        concat(comm::place_of_rank(world, rank), " in training at step ", parts_.progress.step));
}

std::map<std::string, double> TrainingRecords::figures_of(std::vector<double> const& sums,
                                                          double weight) const {
    std::map<std::string, double> figures;
    auto const names = parts_.work.task->figures();
    for (std::size_t i = 0; i < sums.size(); ++i) {
        figures[names[i]] = mean(sums[i], weight);
    }
    return figures;
}

Epoch TrainingRecords::epoch() {
    auto const& progress = parts_.progress;
    auto const seconds = epoch_watch_.restart();
    auto figures = parts_.work.task->training_metrics(progress.epoch_counts);
    std::optional<double> accuracy;
    if (auto const found = figures.extract("accuracy")) {
        accuracy = found.mapped();
    }
    figures.merge(figures_of(progress.epoch_figures, progress.epoch_weight));
    figures.merge(parts_.data.epoch_figures());
    return {.epoch = parts_.course.epochs(progress.step),
            .step = progress.step,
            .loss = mean(progress.epoch_loss_sum, progress.epoch_weight),
            .accuracy = accuracy,
            .figures = std::move(figures),
            .samples = parts_.data.samples_per_epoch(),
            .seconds = seconds,
            .samples_per_s = static_cast<double>(epoch_samples_) / seconds};
}

Epoch TrainingRecords::unfinished_epoch() {
    auto report = epoch();
    report.samples = 0;
    for (std::int64_t at = 0; at < parts_.course.in_epoch(parts_.progress.step); ++at) {
        report.samples += parts_.data.samples_in_step(at);
    }
    return report;
}

void TrainingRecords::end_epoch() {
    auto& progress = parts_.progress;
    auto report = epoch();
    if (parts_.facts.privacy) {
        report.figures["epsilon"] =
            epsilon_after(parts_.facts.deck(), parts_.work.train->samples(), progress.step);
    }
    report.resources = parts_.resources.since_last();
    nlohmann::json line{
        {"event", "epoch"}, {"step", report.step}, {"epoch", report.epoch}, {"loss", report.loss}};
    if (report.accuracy) {
        line["accuracy"] = *report.accuracy;
    }
    for (auto const& [name, value] : report.figures) {
        line[name] = value;
    }
    progress.remember(line.dump());
    progress.begin_epoch();
    epoch_samples_ = 0;
    parts_.observers.tell(report);
    if (wants_histograms("weights")) {
        auto const& world = parts_.facts.world;
        parts_.engine->whole();
        comm::agree(world, "computing histograms of the weights", [&] {
            if (world.is_root()) {
                parts_.observers.tell(
                    Histograms{progress.step, "weights", histograms(*parts_.work.model)});
            }
        });
    }
}

bool TrainingRecords::wants_histograms(std::string const& what) const {
    auto const& monitor = parts_.facts.deck().monitor;
    return monitor.tensorboard && (monitor.histograms == what || monitor.histograms == "gradients");
}

} // namespace lockstep::train
