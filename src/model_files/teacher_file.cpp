#include "teacher_file.hpp"

#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "checkpoint/noted_keys.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "data/convert.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "model_files/first_weights.hpp"
#include "model_files/keys_of_others.hpp"
#include "model_files/model_changes.hpp"
#include "model_files/stored_deck.hpp"
#include "nn/named_code.hpp"

#include <algorithm>

#include "teacher_rules.hpp"

namespace lockstep::train {

namespace {

/// Adds to `ignored` what the deck says in vain.
config::Deck deck_of_teacher(config::Deck const& deck, checkpoint::Weights const& weights,
                             std::vector<std::string>& ignored) {
    if (auto const& named = deck.distill.teacher_deck; !named.empty()) {
        config::DeckSource source;
        source.read(named);
        ignored = drop_keys_of_others(source);
        return source.parse();
    }
    auto const& record = weights.record();
    if (!record.deck.empty()) {
        return stored_deck(record, weights.path());
    }
    config::DeckSource source;
    for (auto const& [key, value] : checkpoint::noted_keys(record, weights.path())) {
        source.set(key, {.value = value, .origin = weights.path().string()});
    }
    if (!source.values().contains("task.kind")) {
        throw no_teacher(deck, "the file does not describe its model",
                         "Name the deck of that model in distill.teacher-deck");
    }
    return source.parse();
}

void require_no_code(config::Deck const& deck, config::Deck const& teacher) {
    auto const named = nn::named_code(deck);
    for (auto const& [key, value] : nn::named_code(teacher)) {
        auto const ours = named.find(key);
        if (ours == named.end() || ours->second != value) {
            throw no_teacher(
                deck,
                concat("its deck sets ", key, " = ", value,
                       ", but code that a run loads may be named only by your own deck"),
                "Name the teacher's deck in distill.teacher-deck, or export the "
                "teacher with lockstep checkpoint export --format torchscript");
        }
    }
}

/// What inputs that are normalised as this run's become for the teacher.
task::Rescaling rescaling_for(config::Deck const& deck, data::Facts const& teacher,
                              Workload const& work) {
    if (!work.train) {
        return {};
    }
    auto const& ours = work.facts;
    auto const is_last = [&](data::Facts const& facts) {
        auto const means = facts.mean.size();
        return means > 1 &&
               data::axis_of_channels(means, ours.inputs.front().shape, facts.channels_last) > 0;
    };
    task::Rescaling found{.factor = {}, .offset = {}, .channels_last = is_last(teacher)};
    bool const same_axis =
        teacher.mean.size() <= 1 || ours.mean.size() <= 1 || found.channels_last == is_last(ours);
    if (!teacher.scale_known ||
        (teacher.mean == ours.mean && teacher.std == ours.std && same_axis)) {
        return found;
    }
    if (!same_axis) {
        throw no_teacher(deck,
                         concat("its inputs were normalized along the ",
                                found.channels_last ? "last" : "first",
                                " dimension of a sample, but those of this run along the ",
                                found.channels_last ? "first" : "last"),
                         "Choose a teacher with the same order of the dimensions of a sample");
    }
    found.channels_last = found.channels_last || is_last(ours);
    auto const at = [](std::vector<double> const& values, std::size_t i, double none) {
        return values.empty() ? none : values[values.size() == 1 ? 0 : i];
    };
    for (std::size_t i = 0; i < std::max({teacher.mean.size(), ours.mean.size()}); ++i) {
        auto const std = at(teacher.std, i, 1);
        found.factor.push_back(at(ours.std, i, 1) / std);
        found.offset.push_back((at(ours.mean, i, 0) - at(teacher.mean, i, 0)) / std);
    }
    return found;
}

/// A trained model of this program, or a file of weights.
TeacherFile open_weights_of(config::Deck const& deck, checkpoint::VerifiedFile const& file,
                            Workload const& work) {
    auto const weights = checkpoint::open_weights(file);
    std::vector<std::string> ignored;
    auto teacher = deck_of_teacher(deck, *weights, ignored);
    teacher.model = nn::without_compiled_step(std::move(teacher.model)); // a teacher never trains
    if (auto const changes = model_changes(teacher, file); !changes.empty()) {
        throw no_teacher(deck,
                         concat("distill.teacher-deck has another model than the one that was "
                                "trained: ",
                                changes),
                         "Name the deck that it was trained with, or remove distill.teacher-deck");
    }
    require_same_task(deck, teacher.task.kind);
    if (deck.distill.teacher_deck.empty()) {
        require_no_code(deck, teacher);
        for (auto const& [key, script] : nn::named_scripts(teacher)) {
            ignored.push_back(concat("the deck in ", file.path().string(),
                                     " names the TorchScript program ", script));
        }
    }
    auto const facts = facts_of(weights->record(), file.path());
    require_same_samples(deck, facts, work);
    return {file, teacher.model, rescaling_for(deck, facts, work), facts, std::move(ignored)};
}

} // namespace

TeacherFile open_teacher(comm::Communicator const& world, config::Deck const& deck,
                         Workload const& work) {
    auto const& path = deck.distill.teacher;
    auto const kind_of = [&](char const* extension) { return path.ends_with(extension); };
    if (kind_of(".pt") || kind_of(".pt2")) {
        TeacherFile program;
        program.model.name = kind_of(".pt2") ? "export" : "script";
        program.model.own["file"] = path;
        if (auto const code = nn::named_code(deck); code.contains("model.operators")) {
            program.model.own["operators"] = code.at("model.operators"); // of both programs
        }
        if (!deck.distill.teacher_deck.empty()) {
            program.ignored.push_back(
                concat("ignored: distill.teacher-deck = ", deck.distill.teacher_deck,
                       ", because the program ", path, " needs no deck"));
        }
        comm::agree(world, "reading distill.teacher", [&] {
            if (auto const facts = facts_of_program(program.model.name, path)) {
                require_same_samples(deck, *facts, work);
                program.rescaling = rescaling_for(deck, *facts, work);
                program.facts = facts;
            }
        });
        return program;
    }
    auto const file = checkpoint::verify_together(world, path);
    std::optional<TeacherFile> teacher;
    comm::agree(world, "reading distill.teacher",
                [&] { teacher = open_weights_of(deck, file, work); });
    return *teacher;
}

} // namespace lockstep::train
