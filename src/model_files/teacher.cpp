#include "model_files/teacher.hpp"

#include "base/text.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/replica_tree.hpp"
#include "data/convert.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "lockstep/nn/registry.hpp"
#include "nn/evaluation_mode.hpp"
#include "nn/named_code.hpp"
#include "task/distilled.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "batches/model_facts.hpp"
#include "batches/outputs_format.hpp"
#include "batches/teacher_outputs.hpp"
#include "device/device.hpp"
#include "device/place.hpp"
#include "device/precision.hpp"
#include "model_files/finite_weights.hpp"
#include "model_files/first_weights.hpp"
#include "model_files/keys_of_others.hpp"
#include "model_files/model_changes.hpp"
#include "model_files/stored_deck.hpp"

namespace lockstep::train {

namespace {

/// What a teacher's file is, and what its model is made from.
struct TeacherFile {
    std::optional<checkpoint::VerifiedFile> weights{}; ///< none: the model is a program of PyTorch
    config::Model model{};
    task::Rescaling rescaling{};
    std::optional<data::Facts> facts{}; ///< of what it was trained on; none: not known
    std::vector<std::string> ignored{}; ///< sentences on keys of distill.teacher-deck
};

/// The key that names the teacher, or the file of its outputs, and its value.
std::string key_of_teacher(config::Deck const& deck) {
    auto const& distill = deck.distill;
    return distill.outputs.empty() ? concat("distill.teacher = ", distill.teacher)
                                   : concat("distill.outputs = ", distill.outputs);
}

Error no_teacher(config::Deck const& deck, std::string why, std::string next) {
    return {ExitCode::usage, {key_of_teacher(deck), std::move(why), std::move(next)}};
}

/// Adds to `ignored` what the deck says in vain.
config::Deck deck_of_teacher(config::Deck const& deck, checkpoint::Weights const& weights,
                             std::vector<std::string>& ignored) {
    if (auto const& named = deck.distill.teacher_deck; !named.empty()) {
        config::DeckSource source;
        source.read(named);
        ignored = drop_keys_of_others(source);
        return source.parse();
    }
    if (weights.record().deck.empty()) {
        throw no_teacher(deck, "the file does not describe its model",
                         "Name the deck of that model in distill.teacher-deck");
    }
    return stored_deck(weights.record(), weights.path());
}

std::string classes_text(std::vector<std::string> const& names) {
    return names.empty() ? "not named" : joined(names, ", ");
}

void require_same_task(config::Deck const& deck, std::string const& of_teacher) {
    if (of_teacher != deck.task.kind) {
        throw no_teacher(deck,
                         concat("its model was trained for task.kind = ", of_teacher,
                                ", but this run has task.kind = ", deck.task.kind),
                         "Choose a teacher that was trained for the same task");
    }
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

/// Its samples must mean what those of this run mean.
void require_same_samples(config::Deck const& deck, data::Facts const& teacher,
                          Workload const& work) {
    auto const& ours = work.facts.classes;
    auto const& theirs = teacher.classes;
    if (!ours.empty() && !theirs.empty() && ours != theirs) {
        throw no_teacher(deck,
                         concat("its classes are ", classes_text(theirs),
                                ", but those of data.train are ", classes_text(ours)),
                         "Choose a teacher with the same classes in the same order");
    }
    if (auto const differs = data::difference(work.facts, teacher, "its training data");
        !differs.empty()) {
        throw no_teacher(deck, concat("in data.train, ", differs),
                         "Choose a teacher that was trained on the same kind of samples");
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

/// Collective  over `world`
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

/// Instances that may compute at once.
int instances_on(comm::Communicator const& world, config::Deck const& deck, int ranks) {
    bool const concurrent = deck.run.mode == "dp" || deck.communication.sync_batch_norm;
    auto const nodes = comm::subtrees_of_ranks(static_cast<int>(deck.run.replicas), ranks);
    return concurrent ? nodes[static_cast<std::size_t>(world.rank())].count : 1;
}

std::shared_ptr<nn::Model> make_teacher(config::Deck const& deck, TeacherFile const& file,
                                        Workload const& work) {
    auto inputs = work.samples.inputs;
    if (file.facts) {
        complete_vocabularies(inputs, file.facts->inputs);
    }
    auto const& shape = inputs.front().shape;
    nn::Interface const interface {
        .sample_shape = {shape.begin(), shape.end()}, .outputs = work.task->outputs(),
        .inputs = inputs, .targets = work.samples.targets,
        .of_samples = model_interface(deck, work.samples, *work.task).of_samples,
        .channels_last = memory_format(deck.precision) == "channels-last", .teaches = true
    };
    std::shared_ptr<nn::Model> model;
    try {
        model = nn::make_model(file.model, interface, 0);
        if (file.weights) {
            load_weights(*model, *file.weights);
        }
    } catch (Error const& error) {
        // A program that cannot be read is damaged; other data errors tell what does not fit.
        bool const is_program = file.model.name == "export" || file.model.name == "script";
        bool const is_damaged = is_program && !model;
        if (error.code() != ExitCode::usage && (error.code() != ExitCode::data || is_damaged)) {
            throw;
        }
        throw no_teacher(deck,
                         concat("it does not fit the samples and the task of this run (",
                                error.text().what, ": ", error.text().why, ")"),
                         "Choose a teacher that was trained on samples of the same shape, for the "
                         "same number of outputs");
    }
    require_finite_weights(*model, deck.distill.teacher);
    return model;
}

/// The sizes of what the run's model returns for two samples.
std::vector<std::int64_t> own_sizes(Workload const& work, nn::Fields const& inputs) {
    torch::NoGradGuard const no_grad;
    nn::EvaluationMode const evaluation(*work.model);
    return work.model->forward(inputs).sizes().vec();
}

/// Runs both on two empty samples, so that what does not fit is told before the first step.
void require_same_outputs(config::Deck const& deck, nn::Model& teacher, Workload const& work,
                          std::vector<config::HiddenPair> const& hidden) {
    torch::NoGradGuard const no_grad;
    nn::EvaluationMode const evaluation(*work.model);
    nn::EvaluationMode const teaching(teacher);
    auto const inputs = [&] { return nn::zeros(work.samples.inputs, 2, torch::kCPU); };
    auto const own = own_sizes(work, inputs());
    std::string given;
    try {
        auto const sizes = teacher.forward(inputs()).sizes().vec();
        if (sizes == own) {
            task::require_hidden(*work.model, teacher, inputs(), hidden);
            return;
        }
        given = concat("it returns ", nn::sizes_text(sizes),
                       " for two samples, but this run's model returns ", nn::sizes_text(own));
    } catch (c10::Error const& error) {
        given = concat("it cannot take the samples of this run (",
                       split(error.what_without_backtrace(), '\n').front(), ")");
    }
    throw no_teacher(deck, std::move(given),
                     "Choose a teacher with the same inputs and outputs as this run's model");
}

/// Collective  over `world`
void require_roots(comm::Communicator const& world, config::Deck const& deck,
                   std::int64_t teacher) {
    auto const roots = comm::all_gather(world, teacher).front();
    comm::agree(world, "comparing the teachers of all ranks", [&] {
        if (teacher != roots) {
            throw Error(ExitCode::no_input,
                        {key_of_teacher(deck),
                         concat("this rank's file does not hold the same ",
                                deck.distill.outputs.empty() ? "model" : "outputs", " as rank 0's"),
                         "Put the same file on all hosts, or on a file system that they share"});
        }
    });
}

/// What the keys alone say.
void require_outputs_suffice(config::Deck const& deck) {
    auto const& distill = deck.distill;
    if (!distill.teacher.empty()) {
        throw no_teacher(deck,
                         concat("distill.teacher = ", distill.teacher,
                                " is also set, but a run can learn from only one of the two"),
                         "Remove distill.teacher to read the outputs from the file, or "
                         "distill.outputs to run the teacher in each step");
    }
    if (distill.hidden != "none") {
        throw no_teacher(deck,
                         concat("distill.hidden = ", distill.hidden,
                                " needs the outputs of hidden layers, which the file does not "
                                "hold"),
                         "Remove distill.hidden, or name the model in distill.teacher instead");
    }
    if (deck.data.augment != "none") {
        throw no_teacher(deck,
                         concat("data.augment = ", deck.data.augment,
                                " changes the samples, but the file holds the outputs for the "
                                "samples as they are"),
                         "Set data.augment = none, or name the model in distill.teacher instead");
    }
}

/// They must be for the samples, the task, the classes and the model of this run.
void require_fitting_outputs(config::Deck const& deck, TeacherOutputs const& outputs,
                             Workload const& work) {
    char const* const again = "Write the file again with this run's data: lockstep evaluate DECK "
                              "MODEL --outputs FILE.h5 --data.train FILES";
    if (outputs.samples() != work.data_samples) {
        throw no_teacher(deck,
                         concat("it is for ", amount_of(outputs.samples(), "sample"),
                                ", but data.train has ", count_text(work.data_samples)),
                         again);
    }
    auto const& record = outputs.record();
    if (record.integers.at(hash_of_data) != work.data_hash) {
        throw no_teacher(deck,
                         "it is for other samples than those of data.train, or for other values "
                         "of data.inputs, data.targets, data.sequence, data.mask or "
                         "data.sample-weights",
                         again);
    }
    require_same_task(deck, record.notes.at(task_note));
    require_same_samples(deck, facts_of(record, deck.distill.outputs), work);
    auto const own = own_sizes(work, nn::zeros(work.samples.inputs, 2, torch::kCPU));
    std::vector<std::int64_t> given{2};
    std::ranges::copy(outputs.info().shape, std::back_inserter(given));
    if (given != own) {
        throw no_teacher(deck,
                         concat("it has outputs of ", nn::sizes_text(given),
                                " for two samples, but this run's model returns ",
                                nn::sizes_text(own)),
                         "Choose a teacher with the same outputs as this run's model");
    }
}

/// Collective  over `world`
std::string add_outputs(comm::Communicator const& world, config::Deck const& deck, Workload& work) {
    auto const& path = deck.distill.outputs;
    bool of_classes = false;
    comm::agree(world, "opening distill.outputs", [&] {
        of_classes = task::learns_classes(deck.task.kind, "distill.outputs");
        require_outputs_suffice(deck);
        if (world.is_root()) {
            require_file_of_outputs(path);
        }
    });
    auto const file = checkpoint::verify_together(world, path);
    comm::agree(world, "opening distill.outputs", [&] {
        auto const outputs = std::make_shared<TeacherOutputs const>(file);
        require_fitting_outputs(deck, *outputs, work);
        work.teacher = outputs->hash();
        work.outputs = outputs;
    });
    require_roots(world, deck, work.teacher);
    work.outputs->require_values(world);
    work.task = task::distilled(
        std::move(work.task),
        {.options = deck.distill, .teachers = {}, .of_classes = of_classes, .recorded = true});
    return concat("also learning from the outputs in ", path);
}

} // namespace

std::vector<std::string> add_teacher(comm::Communicator const& world, config::Deck const& deck,
                                     int ranks, torch::Device device, Workload& work) {
    if (!deck.distill.outputs.empty()) {
        return {add_outputs(world, deck, work)};
    }
    if (deck.distill.teacher.empty()) {
        return {};
    }
    bool of_classes = false;
    comm::agree(world, "opening distill.teacher", [&] {
        of_classes = task::learns_classes(deck.task.kind);
        if (concurrent_devices(deck.run, ranks).size() > 1) {
            throw no_teacher(
                deck,
                "with a teacher, a process can use only one device, but this process uses several",
                "Start one rank for each device");
        }
        if (deck.distill.hidden != "none" && deck.precision.gradient_checkpointing) {
            throw Error(ExitCode::usage,
                        {"distill.hidden cannot be combined with precision.gradient-checkpointing",
                         "gradient checkpointing does not keep the outputs of hidden layers",
                         "Set precision.gradient-checkpointing = false, or remove distill.hidden"});
        }
    });
    auto const file = open_teacher(world, deck, work);
    task::Lesson lesson{deck.distill, {},
                        of_classes,   config::hidden_pairs(deck.distill.hidden).value(),
                        false,        file.rescaling};
    comm::agree(world, "opening distill.teacher", [&] {
        lesson.teachers.push_back(make_teacher(deck, file, work));
        auto& first = *lesson.teachers.front();
        require_same_outputs(deck, first, work, lesson.hidden);
        auto const weights = hash_of_tensors(first);
        work.teacher = recorded(teacher_hash(weights, first, file.model));
        work.teacher_weights = recorded(weights);
        auto const wanted = first.runs_on_threads() ? instances_on(world, deck, ranks) : 1;
        while (static_cast<int>(lesson.teachers.size()) < wanted) {
            lesson.teachers.push_back(make_teacher(deck, file, work));
        }
        for (auto const& teacher : lesson.teachers) {
            place(*teacher, device);
        }
    });
    require_roots(world, deck, work.teacher);
    work.task = task::distilled(std::move(work.task), std::move(lesson));
    auto remarks = file.ignored;
    remarks.push_back(concat(
        "also learning from the outputs of ", deck.distill.teacher,
        !file.facts ? ", which does not say how its inputs were normalized or what its classes "
                      "are: it gets inputs as this run's model does"
        : file.rescaling.factor.empty()
            ? ""
            : ", which gets inputs normalized with the mean and std of its own training "
              "data"));
    return remarks;
}

} // namespace lockstep::train
