#include "teacher_rules.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "nn/evaluation_mode.hpp"

namespace lockstep::train {

namespace {

/// The key that names the teacher, or the file of its outputs, and its value.
std::string key_of_teacher(config::Deck const& deck) {
    auto const& distill = deck.distill;
    return distill.outputs.empty() ? concat("distill.teacher = ", distill.teacher)
                                   : concat("distill.outputs = ", distill.outputs);
}

std::string classes_text(std::vector<std::string> const& names) {
    return names.empty() ? "not named" : joined(names, ", ");
}

std::string scale_of_targets(data::Facts const& facts) {
    return facts.target_mean.empty()
               ? std::string("not normalised")
               : concat("normalised by the mean ", significant(facts.target_mean.front(), 6),
                        " and the standard deviation ", significant(facts.target_std.front(), 6),
                        facts.target_mean.size() > 1 ? " (of the first value)" : "");
}

} // namespace

Error no_teacher(config::Deck const& deck, std::string why, std::string next) {
    return {ExitCode::usage, {key_of_teacher(deck), std::move(why), std::move(next)}};
}

void require_same_task(config::Deck const& deck, std::string const& of_teacher) {
    if (of_teacher != deck.task.kind) {
        throw no_teacher(deck,
                         concat("its model was trained for task.kind = ", of_teacher,
                                ", but this run has task.kind = ", deck.task.kind),
                         "Choose a teacher that was trained for the same task");
    }
}

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
    if (work.facts.target_mean != teacher.target_mean ||
        work.facts.target_std != teacher.target_std) {
        throw no_teacher(deck,
                         concat("its targets were ", scale_of_targets(teacher),
                                ", but those of this run are ", scale_of_targets(work.facts)),
                         "Choose a teacher that was trained on the same data with the same "
                         "data.normalise-targets");
    }
    if (auto const differs = data::difference(work.facts, teacher, "its training data");
        !differs.empty()) {
        throw no_teacher(deck, concat("in data.train, ", differs),
                         "Choose a teacher that was trained on the same kind of samples");
    }
}

std::vector<std::int64_t> own_sizes(Workload const& work, nn::Fields const& inputs) {
    torch::NoGradGuard const no_grad;
    nn::EvaluationMode const evaluation(*work.model);
    return work.model->forward(inputs).sizes().vec();
}

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

} // namespace lockstep::train
