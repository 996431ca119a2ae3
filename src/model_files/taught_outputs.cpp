#include "taught_outputs.hpp"

#include "base/text.hpp"
#include "batches/model_facts.hpp"
#include "batches/outputs_format.hpp"
#include "batches/teacher_outputs.hpp"
#include "comm/agree.hpp"
#include "task/distilled.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

#include "teacher_rules.hpp"

namespace lockstep::train {

namespace {

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

} // namespace

std::string add_taught_outputs(comm::Communicator const& world, config::Deck const& deck,
                               Workload& work) {
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

} // namespace lockstep::train
