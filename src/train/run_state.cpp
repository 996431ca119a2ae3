#include "run_state.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "batches/privacy_rules.hpp"
#include "checkpoint/adapter.hpp"
#include "comm/agree.hpp"
#include "lockstep/base/error.hpp"
#include "model_files/same_code.hpp"
#include "nn/low_rank.hpp"
#include "step/replica_arrays.hpp"
#include "train/privacy_key.hpp"

#include "same_data.hpp"

namespace lockstep::train {

namespace {

constexpr char const* thawed_after = "thawed_after";
constexpr char const* teacher_weights = "teacher_weights"; ///< of the record: their hash

/// What is not the same in a teacher whose hash is not; the weights' hash was `before`, 0 in older
/// checkpoints.
char const* change_of_teacher(std::int64_t before, std::int64_t now) {
    return before == 0     ? "its weights, its program or its libraries have changed"
           : before == now ? "its weights are the same, but its program (the graph or the code) or "
                             "its libraries have changed"
                           : "its weights have changed";
}

} // namespace

void RunState::restore() {
    if (!parts_.facts.setup.found) {
        return;
    }
    comm::agree(parts_.facts.world, "reading the checkpoint", [&] {
        auto const reader = checkpoint::reader_of(*parts_.facts.setup.found);
        require_same_data(*reader);
        require_same_code(reader->record());
        require_same_key(reader->record());
        read(*reader);
    });
    parts_.engine->restored();
    parts_.data.restored(parts_.progress.step);
}

void RunState::read(checkpoint::Reader const& reader) {
    auto const& record = reader.record();
    auto& engine = *parts_.engine;
    bool const shares_state = parts_.facts.setup.shares_state;
    auto const fresh = engine.state().restore(reader, shares_state);
    restore_replica_arrays(reader, parts_.data.state(), parts_.facts.own_node(),
                           parts_.facts.deck().run.replicas);
    parts_.progress = Progress::read_from(record);
    auto const& setup = parts_.facts.setup;
    parts_.course.early_stopping().resume(parts_.progress, parts_.course.total_steps(),
                                          setup.foreign || (setup.found->held && !setup.in_memory));
    require_same_measure(record);
    engine.loss_scale().restore(real_of(record, "loss_scale"),
                                integer_of(record, "loss_scale_growth"),
                                integer_of(record, "skipped_steps"));
    engine.set_steps_of_others(shares_state ? integer_of(record, "steps_of_others", 0)
                                            : parts_.progress.step - engine.loss_scale().skipped());
    if (parts_.course.is_thawed(parts_.progress.step)) {
        engine.set_thawed_after(shares_state ? integer_of(record, thawed_after, -1) : 0);
    }
    if (!fresh.empty()) {
        parts_.remarks.add(
            concat("the checkpoint has no matching state for some arrays, which start over: ",
                   joined(fresh, ", ")));
    }
}

void RunState::require_same_data(checkpoint::Reader const& reader) {
    auto const require_same = [&] {
        train::require_same_data(reader, parts_.data.fingerprint(), parts_.work.facts);
    };
    if (options_.force && !parts_.facts.privacy) {
        auto const changed = comm::failure_of(require_same);
        if (changed || parts_.audit.differs_from(reader.record())) {
            forced_.push_back(concat("other contents of data.train",
                                     changed ? concat(" (", changed->text().why, ")") : ""));
        }
        return;
    }
    auto const compare = [&] {
        parts_.audit.compare(reader.record());
        require_same();
    };
    if (!parts_.facts.privacy) {
        compare();
    } else if (auto const changed = comm::failure_of(compare)) {
        throw Error(changed->code(),
                    {changed->text().what, changed->text().why,
                     "Copy the old files back, or start over with --checkpoint.resume none"});
    }
}

void RunState::require_same_code(checkpoint::Record const& record) {
    auto const& deck = parts_.facts.deck();
    auto const changed = [&](std::string const& subject, char const* what, std::string const& why) {
        if (!options_.force || parts_.facts.privacy) {
            throw Error(ExitCode::usage,
                        {concat(subject, " is not the ", what, " that this run began with"), why,
                         concat("Copy the old file back",
                                parts_.facts.privacy ? "" : ", allow the new file with --force",
                                ", or start over with --checkpoint.resume none")});
        }
        forced_.push_back(concat("other contents of ", subject));
    };
    // Where the file or the teacher is new, or gone, the deck has changed.
    auto const is_same = [&](char const* name, std::int64_t now) {
        auto const before = integer_of(record, name, now);
        return before == now || before == 0 || now == 0;
    };
    compare_code(record, deck, parts_.facts.code,
                 [&](auto const& what, auto const& why) { changed(what, "library", why); });
    if (!is_same("model", static_cast<std::int64_t>(parts_.work.model->fingerprint()))) {
        changed(concat("the file of the model (model.name = ", deck.model.name, ")"), "one",
                "its contents have changed");
    }
    if (is_same("teacher", parts_.work.teacher)) {
        return;
    }
    if (!deck.distill.outputs.empty()) {
        changed(concat("distill.outputs = ", deck.distill.outputs), "file",
                "it holds other outputs");
    } else {
        changed(
            concat("distill.teacher = ", deck.distill.teacher), "model",
            change_of_teacher(integer_of(record, teacher_weights, 0), parts_.work.teacher_weights));
    }
}

/// With another key the rest of the run would be private, too, but not the run that was begun.
void RunState::require_same_key(checkpoint::Record const& record) const {
    if (!parts_.facts.privacy) {
        return;
    }
    auto const now = fingerprint(*parts_.facts.setup.privacy_key);
    if (integer_of(record, "privacy_key", now) != now) {
        throw Error(ExitCode::usage,
                    {"the key in privacy.key is not the one that this run began with",
                     "each step draws its samples and its noise from the key",
                     "Copy the old key file back, or start over with --checkpoint.resume none"});
    }
}

/// Values of another metric, or of other samples, say nothing of which model is the best.
void RunState::require_same_measure(checkpoint::Record const& record) {
    auto const& metric = parts_.work.best_metric.name;
    auto const chosen_by = record.notes.find("best_metric"); // older checkpoints do not tell
    bool const other_metric = chosen_by != record.notes.end() && chosen_by->second != metric;
    bool const other_samples =
        parts_.work.validation && integer_of(record, "validation", parts_.facts.validation_hash) !=
                                      parts_.facts.validation_hash;
    if (other_samples) {
        parts_.remarks.add("warning: data.validation has changed: the best model is chosen again");
    } else if (other_metric) {
        parts_.remarks.add(concat("the best model is chosen again, now by ", metric, " instead of ",
                                  chosen_by->second));
    }
    if (other_samples || other_metric) {
        parts_.progress.forget_best();
    }
}

checkpoint::Snapshot RunState::snapshot() {
    return with_the_rest(parts_.engine->state().snapshot());
}

checkpoint::Snapshot RunState::own_snapshot() {
    return with_the_rest(parts_.engine->own_state().snapshot());
}

checkpoint::Snapshot RunState::with_the_rest(checkpoint::Snapshot snapshot) {
    add_replica_arrays(snapshot, parts_.data.state(), parts_.facts.own_node(),
                       parts_.facts.deck().run.replicas);
    snapshot.record = record();
    return snapshot;
}

checkpoint::Record RunState::record() const {
    checkpoint::Record record;
    auto const& deck = parts_.facts.deck();
    auto const& engine = *parts_.engine;
    parts_.progress.write_to(record);
    record.integers["seed"] = deck.run.seed;
    record.integers["replicas"] = deck.run.replicas;
    record.integers["epoch"] = parts_.course.epochs(parts_.progress.step);
    // The place in the data is the step alone: which samples that means is arithmetic.
    record.integers["cursor"] = parts_.course.in_epoch(parts_.progress.step);
    record.integers["data"] = static_cast<std::int64_t>(parts_.data.fingerprint());
    if (parts_.work.validation) {
        record.integers["validation"] = parts_.facts.validation_hash;
    }
    record.integers["model"] = static_cast<std::int64_t>(parts_.work.model->fingerprint());
    if (parts_.work.teacher != 0) {
        record.integers["teacher"] = parts_.work.teacher;
    }
    if (parts_.work.teacher_weights != 0) {
        record.integers[teacher_weights] = parts_.work.teacher_weights;
    }
    record.reals["learning_rate"] =
        parts_.course.rate(parts_.progress.step, parts_.progress.plateau.reductions);
    record.reals["loss_scale"] = engine.loss_scale().value();
    record.integers["loss_scale_growth"] = engine.loss_scale().growth();
    record.integers["skipped_steps"] = engine.loss_scale().skipped();
    if (engine.steps_of_others() > 0) {
        record.integers["steps_of_others"] = engine.steps_of_others();
    }
    if (engine.thawed_after() >= 0) {
        record.integers[thawed_after] = engine.thawed_after();
    }
    if (deck.model.lora_rank > 0) {
        record.reals[checkpoint::adapter_scale] = nn::adapter_scale(deck.model);
    }
    if (auto const audited = parts_.audit.record()) {
        record.notes["data"] = *audited;
    }
    if (parts_.facts.privacy) {
        record.integers["privacy_key"] = fingerprint(*parts_.facts.setup.privacy_key);
        record.integers["initial_weights"] = parts_.facts.initial_weights;
        if (parts_.facts.data_content != 0) {
            record.integers["data_content"] = parts_.facts.data_content;
        }
        record.reals["epsilon"] = epsilon(parts_.progress.step).value();
        record.reals["delta"] = deck.privacy.delta;
    }
    note_facts(record, parts_.work.facts);
    note_code(record, parts_.facts.code);
    record.notes["best_metric"] = parts_.work.best_metric.name;
    record.deck = config::to_text(deck);
    record.notes["version"] = options_.version;
    record.notes["time"] = utc_now();
    record.notes["attempt"] = parts_.facts.attempt;
    record.notes["ranks"] = std::to_string(parts_.facts.world.size());
    record.notes["hosts"] = joined(parts_.facts.topology.hosts, ", ");
    if (!parts_.engine.shapes().empty()) {
        record.notes[checkpoint::shapes_note] = parts_.engine.shapes();
    }
    if (!forced_.empty()) {
        record.notes["forced"] = joined(forced_, "; ");
    }
    return record;
}

std::optional<double> RunState::epsilon(std::int64_t steps) const {
    return parts_.facts.privacy ? std::optional(epsilon_after(parts_.facts.deck(),
                                                              parts_.work.train->samples(), steps))
                                : std::nullopt;
}

} // namespace lockstep::train
