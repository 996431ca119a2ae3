#include "train_loop.hpp"

#include "base/recorder.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "lockstep/base/error.hpp"
#include "train/step_witness.hpp"

#include <utility>

#include "injected_fault.hpp"

namespace lockstep::train {

namespace {

/// Pictures of a run that begins; only rank 0 tells of them.
std::int64_t wanted_pictures(RunFacts const& facts, Progress const& progress) {
    bool const begins = progress.step == 0 && facts.world.is_root();
    return begins ? facts.deck().monitor.images : 0;
}

} // namespace

void TrainLoop::open() {
    parts_.audit.start();
    batches_ = parts_.data.batches(parts_.progress.step, parts_.course.total_steps());
    pictured_.emplace(*batches_, wanted_pictures(parts_.facts, parts_.progress),
                      has_channels_last(*parts_.work.model, parts_.work.facts,
                                        parts_.work.samples.inputs.front()),
                      parts_.work.facts);
    parts_.checks.begin();
    parts_.departure.agree(); // whoever was signalled while we started
    bool const heeded = !replays_ || parts_.course.heeds_validations();
    if (parts_.progress.owes_validation && heeded && !parts_.departure.is_decided()) {
        parts_.evaluation.validate();
        parts_.checkpoints.outdate(); // it says that the validation is owed
    }
}

void TrainLoop::close() {
    pictured_.reset();
    batches_.reset();
}

bool TrainLoop::is_over() const {
    return parts_.course.is_at_rest(parts_.progress) || parts_.departure.is_decided();
}

void TrainLoop::run_epoch() {
    if (!batches_) {
        open();
    }
    while (!is_over()) {
        take_step();
        if (parts_.course.in_epoch(parts_.progress.step) == 0) {
            break;
        }
    }
    parts_.engine->settle(); // from here on, the model is anyone's to read
}

void TrainLoop::take_step() {
    profiler_.begin_step();
    Stopwatch watch;
    auto const outcome = [this] {
        Scope const scope("step", parts_.progress.step + 1, ScopeKind::step);
        return one_step();
    }();
    if (!outcome.pruned.empty()) {
        parts_.observers.tell(Remark{outcome.pruned});
    }
    if (!outcome.graphs.remark.empty()) {
        parts_.observers.tell(Remark{outcome.graphs.remark});
    }
    parts_.records.end_step(outcome, watch.seconds());
    if (auto const pictures = pictured_->take(); !pictures.empty()) {
        parts_.observers.tell(Pictures{parts_.progress.step, pictures});
    }
    after_step(outcome);
    profiler_.end_step(outcome.profile, is_over());
    if (stepped_) {
        std::exchange(stepped_, nullptr)();
    }
}

StepOutcome TrainLoop::one_step() {
    auto const step = parts_.progress.step;
    try {
        comm::set_step(parts_.facts.world, step + 1);
        InjectedFault fault(parts_.facts.world.rank(), step + 1, *parts_.work.model);
        parts_.audit.require_good();
        parts_.data.prepare(step);
        auto const removed = remove_channels(step);
        auto outcome = compute(fault);
        if (outcome.checked) {
            parts_.checks.passed(*outcome.checked, step + 1);
        }
        fault.end_step([this]() -> Arena const& { return parts_.engine->whole(); });
        if (!removed.empty()) {
            outcome.pruned = removed;
        }
        if (!outcome.pruned.empty()) {
            parts_.progress.forget_best(); // of a model with more weights
        }
        return outcome;
    } catch (ComputedWrongly const& wrong) {
        parts_.checks.found(wrong);
        throw;
    } catch (Diverged const& diverged) { // which data can be the cause of
        Magnitudes largest;
        comm::agree(parts_.facts.world, concat("checking the samples of step ", step + 1),
                    [&] { largest = parts_.data.require_finite(step); });
        auto text = diverged.text();
        if (parts_.engine->loss_scale().skipped() == step) { // each step so far was skipped
            auto const max = [&](double own) {
                return comm::all_reduce(parts_.facts.world, own, comm::Reduce::maximum);
            };
            Magnitudes const of_all{max(largest.inputs), max(largest.targets)};
            text =
                first_step_text(text, of_all, !parts_.work.facts.mean.empty(), parts_.facts.deck());
        }
        if (!replays_) {
            text.next += concat(". Find where it began: lockstep replay ",
                                parts_.facts.deck().run.directory, " --until-nonfinite");
        }
        throw Diverged(diverged.code(), text, diverged.rank(), diverged.cause());
    } catch (AgreedError const&) {
        throw;
    } catch (...) {
        throw RankError(current_error(), concat("training at step ", step + 1));
    }
}

bool TrainLoop::is_witnessed() const {
    return witness_ != nullptr && witness_->looks_at(parts_.progress.step + 1);
}

StepOutcome TrainLoop::compute(InjectedFault& fault) {
    auto const step = parts_.progress.step;
    auto const in_epoch = parts_.course.in_epoch(step);
    auto const micro_batches = parts_.data.micro_batches(in_epoch);
    bool const witnessed = is_witnessed();
    BatchSource* batches = &fault.read(*pictured_);
    std::optional<WitnessedBatches> shown;
    if (witnessed) {
        witness_->begin({.step = step + 1,
                         .node = parts_.facts.own_node(),
                         .micro_batches = micro_batches,
                         .samples = parts_.data.samples_of(step),
                         .set = parts_.work.train.get(),
                         .sequence = parts_.facts.deck().data.sequence});
        batches = &shown.emplace(*batches, *witness_);
    }
    bool const asks_for_histograms = parts_.records.wants_histograms("gradients") &&
                                     in_epoch + 1 == parts_.course.steps_per_epoch();
    auto outcome =
        parts_.engine->step({.batches = *batches,
                             .step = step,
                             .micro_batches = micro_batches,
                             .samples = parts_.data.samples_in_step(in_epoch),
                             .rate = parts_.course.rate(step, parts_.progress.plateau.reductions),
                             .signal = parts_.departure.asked(),
                             .minutes_passed = parts_.checkpoints.minutes_passed(),
                             .copy_due = parts_.copies.is_due(),
                             .copy_hindrance = [this] { return parts_.copies.hindrance(); },
                             .profile = profiler_.asked(),
                             .histograms = witnessed || asks_for_histograms,
                             .thawed = parts_.course.is_thawed(step),
                             // Episodes are played between steps, by the model.
                             .followed = parts_.work.train != nullptr,
                             .check = fault.read(parts_.checks.due(step))});
    if (witnessed) {
        witness_->end(outcome, parts_.engine->results());
    }
    return outcome;
}

/// Where they are due before the next step.
std::string TrainLoop::remove_channels(std::int64_t step) {
    if (!parts_.engine.removes_channels(step)) {
        return {};
    }
    parts_.checkpoints.settle(); // what is being written says how large the model was
    return parts_.engine.remove_channels(step);
}

void TrainLoop::after_step(StepOutcome const& outcome) {
    auto const step = parts_.progress.step;
    if (auto const& directory = parts_.facts.setup.directory) {
        directory->look_for_it();
    }
    parts_.checkpoints.poll();
    auto const every = parts_.facts.deck().communication.check_replicas_every;
    if (every > 0 && step % every == 0 && !parts_.engine->lends()) { // else each has one owner
        parts_.engine->replica_check().require_same(step);
    }
    if (!outcome.gradients.empty()) {
        parts_.observers.tell(Histograms{step, "gradients", outcome.gradients});
    }
    if (parts_.course.in_epoch(step) == 0) {
        parts_.records.end_epoch();
    }
    measure_after(outcome);
    if (parts_.checkpoints.is_due(outcome.minutes_passed) && !is_over()) {
        parts_.checkpoints.save_in_background();
    }
    if (is_over()) {
        return;
    }
    if (auto const& slow = parts_.records.too_slow()) {
        parts_.checkpoints.save_newest();
        throw AgreedError(*slow);
    }
    parts_.copies.after_step(outcome);
}

/// A validation that is due, unless the run is asked to leave: then it is owed.
void TrainLoop::measure_after(StepOutcome const& outcome) {
    auto& progress = parts_.progress;
    bool const is_due =
        replays_
            ? parts_.course.heeds_validations() && parts_.course.counts_after(progress.step)
            : parts_.course.validates_after(progress.step) || parts_.course.is_at_rest(progress);
    progress.owes_validation = parts_.data.has(DataModule::Set::validation) && is_due;
    if (outcome.signal != 0) {
        parts_.departure.leave(outcome.signal, outcome.signalled_rank);
    } else if (progress.owes_validation) {
        parts_.evaluation.validate();
    }
}

} // namespace lockstep::train
