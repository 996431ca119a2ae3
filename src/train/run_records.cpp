#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/heartbeats.hpp"
#include "config/share.hpp"
#include "lockstep/train/load_weights.hpp"
#include "train/device.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <tuple>

#include "earlier_records.hpp"
#include "histograms.hpp"
#include "input_scale.hpp"
#include "run.hpp"
#include "same_data.hpp"

namespace lockstep::train {

void Run::announce() {
    auto const devices = comm::all_gather_text(world_, device_text(device_));
    auto const memory = deck_.monitor.weight_hash
                            ? comm::all_gather_text(world_, engine_->memory_text())
                            : std::vector<std::string>{};
    comm::agree(world_, "telling how the run starts", [&] {
        if (world_.is_root()) {
            tell_start(devices, memory);
        }
    });
}

void Run::tell_start(std::vector<std::string> const& devices,
                     std::vector<std::string> const& memory) const {
    Started started{.version = options_.version,
                    .attempt = attempt_,
                    .host_of_rank = topology_.host_of_rank,
                    .device_of_rank = devices,
                    .replicas_of_rank = {},
                    .replicas = deck_.run.replicas,
                    .seed = deck_.run.seed,
                    .model = deck_.model.name,
                    .parameters = engine_->layout().parameters,
                    .backend = engine_->exchange().name(),
                    .batch = deck_.data.batch,
                    .accumulate = deck_.optimizer.accumulate,
                    .train_samples = work_.train ? work_.train->samples() : 0,
                    .validation_samples = data_module_->samples(DataModule::Set::validation),
                    .test_samples = data_module_->samples(DataModule::Set::test),
                    .steps_per_epoch = data_module_->steps_per_epoch(),
                    .total_steps = total_steps_,
                    .base_rate = deck_.optimizer.learning_rate,
                    .peak_rate = schedule_->peak(),
                    .class_names = work_.samples.class_names,
                    .class_counts = work_.samples.class_counts,
                    .class_weights = work_.task->class_weights(),
                    .directory = deck_.run.directory,
                    .memory_needed = static_cast<std::uint64_t>(
                        memory_needed(static_cast<double>(engine_->layout().size), deck_.optimizer,
                                      engine_->nodes()[0].count, world_.size())),
                    .memory_of_rank = memory,
                    .remark = joined(remarks_, "; ")};
    for (auto const& node : engine_->nodes()) {
        started.replicas_of_rank.push_back(node.count);
    }
    tell(started);
    for (auto const& text : options_.remarks) {
        tell(Remark{text});
    }
    if (setup_.found) {
        tell(Resumed{setup_.found->file.path().string(), progress_.step, setup_.found->skipped,
                     setup_.forced});
    }
}

bool Run::finished_before() const {
    bool finished = false;
    comm::agree(world_, "reading the records of the run", [&] {
        finished = world_.is_root() && setup_.found &&
                   is_finished(progress_, done(), data_module_->has(DataModule::Set::test),
                               deck_.run.directory);
    });
    return comm::all_reduce(world_, finished ? 1 : 0, comm::Reduce::maximum) != 0;
}

bool Run::channels_last() const {
    auto const layout = deck_.model.own.find("layout");
    return layout != deck_.model.own.end() && layout->second == "channels-last";
}

void Run::remember(std::string const& line) {
    progress_.history += line + "\n";
}

std::map<std::string, double> Run::figures_of(std::vector<double> const& sums,
                                              double weight) const {
    std::map<std::string, double> figures;
    auto const names = work_.task->figures();
    for (std::size_t i = 0; i < sums.size(); ++i) {
        figures[names[i]] = sums[i] / weight;
    }
    return figures;
}

void Run::end_epoch() {
    auto const epoch = progress_.step / data_module_->steps_per_epoch();
    auto const seconds = epoch_watch_.restart();
    auto figures = work_.task->training_metrics(progress_.epoch_counts);
    std::optional<double> accuracy;
    if (auto const found = figures.extract("accuracy")) {
        accuracy = found.mapped();
    }
    figures.merge(figures_of(progress_.epoch_figures, progress_.epoch_weight));
    figures.merge(data_module_->epoch_figures());
    Epoch const report{.epoch = epoch,
                       .step = progress_.step,
                       .loss = progress_.epoch_loss_sum / progress_.epoch_weight,
                       .accuracy = accuracy,
                       .figures = std::move(figures),
                       .samples = data_module_->samples_per_epoch(),
                       .seconds = seconds,
                       .samples_per_s = static_cast<double>(epoch_samples_) / seconds};
    nlohmann::json line{
        {"event", "epoch"}, {"step", report.step}, {"epoch", report.epoch}, {"loss", report.loss}};
    if (accuracy) {
        line["accuracy"] = *accuracy;
    }
    for (auto const& [name, value] : report.figures) {
        line[name] = value;
    }
    remember(line.dump());
    progress_.epoch_figures.clear();
    progress_.epoch_loss_sum = 0;
    progress_.epoch_weight = 0;
    progress_.epoch_counts.clear();
    epoch_samples_ = 0;
    tell(report);
    if (wants_histograms("weights")) {
        comm::agree(world_, "histograms of the weights", [&] {
            if (world_.is_root()) {
                tell(Histograms{progress_.step, "weights", histograms(*work_.model)});
            }
        });
    }
}

bool Run::wants_histograms(std::string const& what) const {
    auto const& wanted = deck_.monitor.histograms;
    return deck_.monitor.tensorboard && (wanted == what || wanted == "gradients");
}

/// Those of a run that begins; only rank 0 tells of them.
std::int64_t Run::wanted_pictures() const {
    bool const begins = progress_.step == 0 && world_.is_root();
    return begins && deck_.monitor.tensorboard ? deck_.monitor.images : 0;
}

/// Nothing when the run was asked to leave before the whole set was measured.
std::optional<Measured> Run::measure(DataModule::Set set) {
    release_device_cache(device_); // blocks of training do not fit those of evaluation
    std::string const name = set == DataModule::Set::test ? "test" : "validation";
    auto const result = data_module_->measure(set, [&](std::int64_t done, std::int64_t all) {
        tell(Measuring{name, done, all});
        return agree_to_leave();
    });
    if (!result) {
        return std::nullopt;
    }
    return Measured{.set = name,
                    .step = progress_.step,
                    .epoch = epochs_after(progress_.step),
                    .loss = result->loss,
                    .samples = result->samples,
                    .metrics = result->metrics,
                    .seconds = result->seconds,
                    .best_metric = work_.best_metric.name};
}

void Run::warn_of_loss(Measured const& measured) const {
    if (!std::isfinite(measured.loss)) {
        tell(Remark{concat("warning: the loss of the ", measured.set,
                           " set is not finite: a sample of it is not, or the model gives what is "
                           "not")});
    }
}

void Run::validate() {
    comm::PhaseScope const phase(world_, comm::Phase::validation);
    auto const averaged = engine_->averaged_weights();
    auto measured = measure(DataModule::Set::validation);
    if (!measured) {
        return;
    }
    progress_.owes_validation = false;
    warn_of_loss(*measured);
    nlohmann::json line{{"event", "validation"},
                        {"step", measured->step},
                        {"loss", measured->loss},
                        {"samples", measured->samples}};
    for (auto const& [name, value] : measured->metrics) {
        line[name] = value;
    }
    remember(line.dump());
    save_best(*measured);
    tell(*measured);
}

void Run::save_best(Measured& measured) {
    auto const& [metric, more] = work_.best_metric;
    double const value = metric == "loss" ? measured.loss : measured.metrics.at(metric);
    bool const better =
        progress_.best_step < 0 || (more ? value > progress_.best : value < progress_.best);
    measured.best = better && std::isfinite(value);
    if (!measured.best) {
        return;
    }
    auto const before = std::pair{progress_.best, progress_.best_step};
    progress_.best = value;
    progress_.best_step = progress_.step;
    settle_background(); // HDF5 is for one thread at a time
    try {
        comm::agree(world_, "writing the best model", [&] {
            if (world_.is_root()) {
                engine_->state().write_model(setup_.directory->path() / "best.h5", record());
            }
        });
    } catch (AgreedError const& failure) {
        if (!of_the_disk(failure)) {
            throw;
        }
        std::tie(progress_.best, progress_.best_step) = before;
        measured.best = false;
        tell(Remark{concat("warning: the best model was not written, best.h5 stays as it was: ",
                           failure.cause(), ": ", failure.what())});
    }
}

checkpoint::Record Run::record() const {
    checkpoint::Record record;
    progress_.write_to(record);
    record.integers["seed"] = deck_.run.seed;
    record.integers["replicas"] = deck_.run.replicas;
    record.integers["epoch"] = progress_.step / data_module_->steps_per_epoch();
    // The place in the data is the step alone: which samples that means is arithmetic.
    record.integers["cursor"] = progress_.step % data_module_->steps_per_epoch();
    record.integers["data"] = static_cast<std::int64_t>(data_module_->fingerprint());
    if (work_.validation) {
        record.integers["validation"] = validation_hash_;
    }
    record.integers["model"] = static_cast<std::int64_t>(work_.model->fingerprint());
    record.reals["learning_rate"] = schedule_->rate(progress_.step);
    record.reals["loss_scale"] = engine_->loss_scale().value();
    record.integers["loss_scale_growth"] = engine_->loss_scale().growth();
    record.integers["skipped_steps"] = engine_->loss_scale().skipped();
    if (engine_->steps_of_others() > 0) {
        record.integers["steps_of_others"] = engine_->steps_of_others();
    }
    if (audit_) {
        record.notes["data"] = audit_->record();
    }
    if (work_.train) {
        note_scale(record, *work_.train);
    }
    note_classes(record, work_.train.get());
    record.notes["best_metric"] = work_.best_metric.name;
    record.deck = config::to_text(deck_);
    record.notes["version"] = options_.version;
    record.notes["time"] = utc_now();
    record.notes["attempt"] = attempt_;
    record.notes["ranks"] = std::to_string(world_.size());
    record.notes["hosts"] = joined(topology_.hosts, ", ");
    if (!setup_.forced.empty()) {
        record.notes["forced"] = joined(setup_.forced, "; ");
    }
    return record;
}

void Run::test() {
    if (!data_module_->has(DataModule::Set::test)) {
        return;
    }
    comm::PhaseScope const phase(world_, comm::Phase::test);
    auto const averaged = engine_->averaged_weights();
    auto const best_file = std::filesystem::path(deck_.run.directory) / "best.h5";
    bool const has_best =
        progress_.best_step >= 0 &&
        comm::all_reduce(world_, world_.is_root() && std::filesystem::exists(best_file) ? 1 : 0,
                         comm::Reduce::maximum) != 0;
    if (has_best) {
        auto const best = checkpoint::verify_together(world_, best_file);
        comm::agree(world_, "reading the best model", [&] { load_weights(*work_.model, best); });
    }
    if (progress_.best_step >= 0 && !has_best) {
        tell(Remark{concat("warning: ", best_file.string(),
                           " is gone: the test is of the last "
                           "step's model, not of the best one")});
    }
    if (auto measured = measure(DataModule::Set::test)) {
        if (has_best) { // the step of the model that is measured
            measured->step = progress_.best_step;
            measured->epoch = epochs_after(progress_.best_step);
        }
        warn_of_loss(*measured);
        tell(*measured);
    }
}

} // namespace lockstep::train
