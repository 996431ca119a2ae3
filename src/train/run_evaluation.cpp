#include "run_evaluation.hpp"

#include "base/text.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "device/device_memory.hpp"
#include "train/not_finite.hpp"

#include <nlohmann/json.hpp>

#include "confusion.hpp"

namespace lockstep::train {

std::optional<Measured> RunEvaluation::measure(DataModule::Set set) {
    release_device_cache(parts_.facts.device); // blocks of training do not fit those of evaluation
    std::string const name = set == DataModule::Set::test ? "test" : "validation";
    auto const result = parts_.data.measure(
        set,
        [&](std::int64_t done, std::int64_t all) {
            parts_.observers.tell(Measuring{name, done, all});
            return parts_.departure.agree();
        },
        [this](auto const& pass) { parts_.engine->lend(pass); });
    if (!result) {
        return std::nullopt;
    }
    return Measured{.set = name,
                    .step = parts_.progress.step,
                    .epoch = parts_.course.place(parts_.progress.step),
                    .loss = result->loss,
                    .samples = result->samples,
                    .metrics = result->metrics,
                    .seconds = result->seconds,
                    .best_metric = parts_.work.best_metric.name,
                    .confusion = confusion_of(*result, parts_.work.samples.class_names),
                    .baseline = baseline_of(*result)};
}

Baseline RunEvaluation::baseline_of(Evaluation const& result) const {
    auto const& work = parts_.work;
    return work.constant_answer ? Baseline{work.constant_answer->what, result.constant,
                                           work.best_metric.more_is_better}
                                : Baseline{};
}

void RunEvaluation::warn_of_values(Measured const& measured) const {
    auto const text = not_finite_text(measured, concat(" of the ", measured.set, " set"));
    if (!text.empty()) {
        parts_.observers.tell(Remark{concat("warning: ", text)});
    }
}

std::optional<Measured> RunEvaluation::measure_validation() {
    return comm::in_phase(parts_.facts.world, comm::Phase::validation, [&] {
        auto const averaged = parts_.engine->averaged_weights();
        return measure(DataModule::Set::validation);
    });
}

void RunEvaluation::validate() {
    comm::in_phase(parts_.facts.world, comm::Phase::validation, [&] {
        auto const averaged = parts_.engine->averaged_weights(); // the best model's, too
        auto measured = measure(DataModule::Set::validation);
        if (!measured) {
            return;
        }
        parts_.progress.owes_validation = false;
        warn_of_values(*measured);
        nlohmann::json line{{"event", "validation"},
                            {"step", measured->step},
                            {"loss", measured->loss},
                            {"samples", measured->samples}};
        for (auto const& [name, value] : measured->metrics) {
            line[name] = value;
        }
        parts_.progress.remember(line.dump());
        measured->best = parts_.best.offer(*measured);
        parts_.observers.tell(*measured);
        judge(parts_.best.value_of(*measured));
    });
}

/// What a validation's metric means for the rest of the run: its learning rate, and its end.
void RunEvaluation::judge(double value) {
    auto& progress = parts_.progress;
    auto const& course = parts_.course;
    if (!course.counts_after(progress.step)) {
        return;
    }
    auto const& metric = parts_.work.best_metric;
    course.early_stopping().take(progress, value, metric.more_is_better, course.total_steps());
    auto const& schedule = parts_.facts.deck().schedule;
    if (schedule.name == "plateau" &&
        Plateau(schedule, metric.more_is_better).take(progress.plateau, value)) {
        parts_.observers.tell(
            Remark{concat("after step ", progress.step, " the learning rate is ",
                          significant(course.rate(progress.step, progress.plateau.reductions), 4),
                          ": ", metric.name, " has not improved in ",
                          amount_of(schedule.patience + 1, "validation"), " (schedule.patience)")});
    }
}

void RunEvaluation::test() {
    if (!parts_.data.has(DataModule::Set::test)) {
        return;
    }
    comm::in_phase(parts_.facts.world, comm::Phase::test, [&] {
        auto const averaged = parts_.engine->averaged_weights();
        bool const is_best = parts_.best.load();
        if (auto measured = measure(DataModule::Set::test)) {
            if (is_best) { // the step of the model that is measured
                measured->step = parts_.progress.best_step;
                measured->epoch = parts_.course.place(parts_.progress.best_step);
            }
            warn_of_values(*measured);
            parts_.observers.tell(*measured);
        }
    });
}

} // namespace lockstep::train
