#include "model_files/teacher.hpp"

#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "comm/agree.hpp"
#include "comm/replica_tree.hpp"
#include "device/device.hpp"
#include "device/place.hpp"
#include "device/precision.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "lockstep/nn/registry.hpp"
#include "model_files/enough_weights.hpp"
#include "model_files/finite_weights.hpp"
#include "model_files/first_weights.hpp"
#include "nn/evaluation_mode.hpp"
#include "task/distilled.hpp"

#include <algorithm>
#include <memory>

#include "taught_outputs.hpp"
#include "teacher_file.hpp"
#include "teacher_rules.hpp"

namespace lockstep::train {

namespace {

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
        if (file.weights) {
            require_enough_weights(file.model, interface, *file.weights);
        }
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

} // namespace

std::vector<std::string> add_teacher(comm::Communicator const& world, config::Deck const& deck,
                                     int ranks, torch::Device device, Workload& work) {
    if (!deck.distill.outputs.empty()) {
        return {add_taught_outputs(world, deck, work)};
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
