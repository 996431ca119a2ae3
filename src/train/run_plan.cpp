#include "train/run_plan.hpp"

#include "arena/bucket_elements.hpp"
#include "arena/layout.hpp"
#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"
#include "batches/make_data_module.hpp"
#include "batches/privacy_rules.hpp"
#include "batches/train_plan.hpp"
#include "batches/training_memory.hpp"
#include "checkpoint/memory_copies.hpp"
#include "comm/partition.hpp"
#include "config/copy_interval.hpp"
#include "data/plan.hpp"
#include "device/precision.hpp"
#include "h5/element_type.hpp"
#include "optimizer/entry_updates.hpp"
#include "optimizer/optimizer.hpp"
#include "step/engine_parts.hpp"
#include "step/replica_arrays.hpp"
#include "train/graph_rule.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <unistd.h>

#include "activations.hpp"
#include "begun_work.hpp"
#include "course.hpp"
#include "decide.hpp"
#include "earlier_records.hpp"
#include "first_checkpoint.hpp"
#include "length.hpp"
#include "same_data.hpp"

namespace lockstep::train {

namespace {

/// A start makes the run's directory, and writes in it.
void require_writable_run(std::filesystem::path const& directory) {
    require_no_file_on(directory);
    for (auto const& place : {directory, directory / "checkpoints"}) {
        auto const there = nearest_directory(place);
        if (::faccessat(AT_FDCWD, there.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
            throw creation_error(concat("cannot write in ", there.string()), there, errno);
        }
    }
}

/// The states that a rank keeps in memory, in its own size: of two steps, its own and, with other
/// hosts, that of a rank there.
double copied_states(config::Deck const& deck, std::vector<RankPlace> const& places) {
    auto const every = config::copy_interval(deck.fault_tolerance.memory_copy_every).value();
    bool const copies = every > 0 || (every < 0 && deck.fault_tolerance.restarts > 0);
    bool const alone = std::ranges::all_of(
        places, [&](auto const& place) { return place.host == places.front().host; });
    return !copies ? 0 : alone ? 2 : 4;
}

/// Bytes of the batches that a rank's loader makes ahead; of samples with a number of rows each,
/// one row.
double batch_bytes(config::Data const& data, data::Dataset const& set) {
    double sample = 0;
    for (auto const* fields : {&set.inputs(), &set.targets()}) {
        for (auto const& field : *fields) {
            auto const unit = field.whole ? sizeof(std::int64_t) : sizeof(float);
            sample += static_cast<double>(h5::elements(field.shape) * unit);
        }
    }
    return sample * static_cast<double>(data.batch * (data.prefetch + 1));
}

PlannedMemory memory_of(config::Deck const& deck, RankShare const& share, data::Dataset const* set,
                        std::vector<RankPlace> const& places) {
    PlannedMemory memory;
    memory.training = training_memory(deck, share);
    memory.batches = set == nullptr ? 0 : batch_bytes(deck.data, *set);
    auto const own_state = share.owned * sizeof(float) + memory.training.optimizer;
    memory.checkpoint = deck.checkpoint.asynchronous ? own_state : 0;
    memory.copies =
        copied_states(deck, places) * (own_state + static_cast<double>(checkpoint::room_to_grow));
    return memory;
}

double counted(std::vector<Range> const& ranges) {
    double sum = 0;
    for (auto const& range : ranges) {
        sum += static_cast<double>(range.count());
    }
    return sum;
}

bool is_of_another(checkpoint::Found const& found, config::Deck const& deck) {
    checkpoint::Store const own(std::filesystem::path(deck.run.directory) / "checkpoints", 1);
    return found.file.path() == deck.checkpoint.resume && !own.holds(found.file.path());
}

/// Whether the run that resumes from `found` has anything left to do, by what a start would look
/// at: the data, the place in it, and the records.
void plan_rest(RunPlan& plan, Workload const& work, DataModule& data_module,
               LengthFacts const& facts, checkpoint::Found const& found, comm::TreeNode all) {
    checkpoint::Reader const reader(found.file);
    require_same_data(reader, data_module.fingerprint(), work.facts);
    auto progress = Progress::read_from(reader.record());
    EarlyStopping const early(plan.deck);
    early.resume(progress, plan.steps, is_of_another(found, plan.deck));
    restore_replica_arrays(reader, data_module.state(), all, plan.deck.run.replicas);
    data_module.restored(progress.step);
    plan.newest = found.file.path().string();
    plan.done = progress.step;
    plan.finished = is_finished(progress,
                                plan.done >= plan.steps || data_module.is_exhausted(plan.done) ||
                                    early.is_due(progress),
                                plan.test > 0, plan.deck.run.directory);
    plan.remarks.push_back(stretch_text(reader.record(), reader.path(), plan.deck, facts));
}

/// The data module of the run, in which this process alone plays all replicas where their state
/// tells how far it is, and else one.
void plan_steps(RunPlan& plan, Workload const& work, Layout const& layout,
                std::optional<checkpoint::Found> const& found) {
    auto const self = comm::Communicator::self();
    comm::TreeNode const own{0, found ? static_cast<int>(plan.deck.run.replicas) : 1};
    auto const data_module = make_data_module({self, plan.deck, work, own, torch::kCPU});
    plan.samples = data_module->samples(DataModule::Set::training);
    plan.played = work.train == nullptr;
    plan.samples_per_step = data_module->samples_in_step(0);
    plan.steps_per_epoch = data_module->steps_per_epoch();
    plan.steps = total_steps(plan.deck.train, plan.steps_per_epoch, data_module->max_steps());
    plan.validation = data_module->samples(DataModule::Set::validation);
    plan.test = data_module->samples(DataModule::Set::test);
    LengthFacts const facts{.steps_per_epoch = plan.steps_per_epoch,
                            .max_steps = data_module->max_steps(),
                            .samples = plan.samples,
                            .validates = data_module->has(DataModule::Set::validation)};
    require_validation(plan.deck, facts.validates);
    plan.remarks.push_back(limits_text(plan.deck, facts));
    plan.early_end = can_end_early(plan.deck, facts)
                         ? early_end_text(plan.deck, work.best_metric.name)
                         : std::string();
    plan.remarks.push_back(plan.early_end);
    std::ranges::move(idle_texts(plan.deck, facts), std::back_inserter(plan.remarks));
    plan.checkpoint_bytes =
        found ? static_cast<double>(std::filesystem::file_size(found->file.path()))
              : first_checkpoint_bytes(plan.deck, work, layout, data_module->state());
    if (found) {
        plan_rest(plan, work, *data_module, facts, *found, own);
    }
}

} // namespace

PlannedStep step_on(RunPlan const& plan, config::Deck const& deck, int ranks) {
    auto here = plan.newest.empty() ? deck : plan.deck;
    settle_new(here, ranks);
    PlannedStep step{here.run.replicas, here.data.batch,
                     here.run.replicas * here.data.batch * here.optimizer.accumulate, plan.steps};
    if (!plan.played) {
        data::TrainPlan const dealt({.samples = plan.samples,
                                     .batch = here.data.batch,
                                     .replicas = static_cast<int>(here.run.replicas),
                                     .accumulate = static_cast<int>(here.optimizer.accumulate),
                                     .drop_last = here.data.drop_last,
                                     .drawn = poisson_draw(here, plan.samples, nullptr)});
        step.samples = dealt.samples_in_step(0);
        step.steps =
            total_steps(here.train, dealt.steps_per_epoch(), private_steps(here, plan.samples));
    }
    return step;
}

RunPlan plan_run(config::Deck deck, std::vector<RankPlace> const& places) {
    RunPlan plan;
    auto const program = static_cast<double>(resident_memory());
    auto const ranks = static_cast<int>(places.size());
    require_possible(deck, ranks);
    require_writable_run(deck.run.directory);
    auto const found = found_for(comm::Communicator::self(), deck, {}, false);
    deck = decide(std::move(deck), found, ranks, /*force=*/false).deck;
    plan.deck = deck;
    auto const begun =
        begin_work(comm::Communicator::self(), deck,
                   {.found = found, .ranks = ranks, .check_size = [](double parameters) {
                        require_memory(parameters * sizeof(float), available_memory());
                    }});
    auto const& work = begun.work;
    plan.remarks = begun.remarks;
    require_concurrent(plan.deck.communication, work.model->runs_on_threads(),
                       static_cast<int>(plan.deck.run.replicas), ranks);
    auto const layout = Layout::of(*work.model);
    comm::Partition const partition(layout.size, ranks,
                                    bucket_elements(deck.communication.first_bucket_mb),
                                    bucket_elements(deck.communication.bucket_mb));
    auto const nodes = comm::subtrees_of_ranks(static_cast<int>(deck.run.replicas), ranks);
    int max_replicas = 1;
    double max_owned = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        auto const owned = counted(partition.owned(rank));
        plan.ranks.push_back({places[at], nodes[at], owned});
        max_replicas = std::max(max_replicas, nodes[at].count);
        max_owned = std::max(max_owned, owned);
    }
    for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
        plan.buckets.push_back(static_cast<double>(partition.bucket(bucket).count()) *
                               sizeof(float));
    }
    plan.frozen = static_cast<double>(layout.frozen());
    plan.updates = entry_updates_text(deck.optimizer, layout);
    plan.parameters = static_cast<double>(layout.parameters);
    plan.tensors = layout.entries.size();
    auto const size = static_cast<double>(layout.size);
    plan.memory = memory_of(deck,
                            {.size = size,
                             .owned = max_owned,
                             .replicas = max_replicas,
                             .ranks = ranks,
                             .largest = largest_parameter(layout),
                             .on_accelerator = places.front().device != "cpu"},
                            work.train.get(), places);
    plan_steps(plan, work, layout, found);
    bool const on_cpus = places.front().device == "cpu";
    plan.memory.program = on_cpus ? program : 0;
    plan.memory.activations = activation_bytes(deck, work);
    GraphFacts const graphs{.deck = deck,
                            .ranks = ranks,
                            .device = torch::Device(places.front().device),
                            .work = &work};
    plan.memory.graphs = uses_graphs(graphs) ? plan.memory.activations.value_or(0) : 0;
    plan.remarks.push_back(graphs_text(graphs));
    plan.remarks.push_back(slow_precision_text(deck.precision, on_cpus));
    std::erase(plan.remarks, "");
    return plan;
}

} // namespace lockstep::train
