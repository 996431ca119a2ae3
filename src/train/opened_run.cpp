#include "opened_run.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/inject.hpp"
#include "base/memory.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "batches/data_cache.hpp"
#include "batches/make_data_module.hpp"
#include "batches/privacy_rules.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "device/configure_torch.hpp"
#include "device/device.hpp"
#include "device/device_memory.hpp"
#include "device/precision.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "model_files/first_weights.hpp"
#include "model_files/smaller_model.hpp"
#include "nn/shapes.hpp"
#include "optimizer/prune_schedule.hpp"
#include "train/graph_rule.hpp"
#include "train/privacy_key.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "begun_work.hpp"
#include "compute_check_rule.hpp"
#include "earlier_records.hpp"
#include "length.hpp"
#include "placement.hpp"

namespace lockstep::train {

OpenedRun::OpenedRun(comm::Communicator const& over, comm::Topology places, RunSetup settled)
    : facts_{.world = over, .topology = std::move(places), .setup = std::move(settled)} {
    choose_device();
    auto begun = open_work();
    facts_.nodes = place_replicas();
    note_initial_weights();
    note_data_content();
    plan();
    keep_near(facts_.deck().data, {work_.train.get(), work_.validation.get(), work_.test.get()},
              facts_.world);
    open_engine(std::move(begun));
    name_attempt();
}

void OpenedRun::choose_device() {
    comm::agree(facts_.world, "start-up", [&] {
        require_known_fault();
        auto on_host = facts_.topology;
        if (facts_.setup.place) {
            on_host.local_rank = facts_.setup.place->rank;
            on_host.local_size = facts_.setup.place->ranks;
        }
        facts_.device = train::choose_device(facts_.deck().run, on_host);
        configure_torch(facts_.deck().run);
        stream_.emplace(facts_.deck(), facts_.world.size(), facts_.device);
        remarks_.add(configure_precision(facts_.deck().precision, facts_.deck().run.deterministic));
        remarks_.add(slow_precision_text(facts_.deck().precision, facts_.device.is_cpu()));
        if (!facts_.deck().communication.broadcast_buffers && facts_.deck().run.replicas > 1) {
            remarks_.add(
                "each replica keeps its own buffers; evaluation and exports use the buffers of "
                "replica 0");
        }
        if (facts_.world.is_root() && !facts_.setup.directory->absence()) {
            File::append(facts_.setup.directory->path() /
                         "log.txt"); // what goes wrong is told there
        }
    });
    require_one_kind(facts_.world, facts_.device);
}

BegunWork OpenedRun::open_work() {
    constexpr char const* phase = "opening the data and the model";
    std::uint64_t share = 0;
    comm::agree(facts_.world, phase, [&] {
        share = memory_to_train_in(facts_.device, facts_.setup.place ? facts_.setup.place->ranks
                                                                     : facts_.topology.local_size);
        if (facts_.device.is_cpu()) {
            limit_memory(share);
        }
    });
    auto begun = begin_work(
        facts_.world, facts_.deck(),
        {.found = facts_.setup.found,
         .force = facts_.setup.force,
         .ranks = facts_.world.size(),
         .device = facts_.device,
         .check_size = fits_within(facts_.deck(), facts_.world.size(), facts_.device, share)});
    work_ = std::move(begun.work);
    if (!facts_.setup.found && facts_.world.is_root()) {
        remarks_.add(lost_checkpoints(facts_.deck().run.directory));
    }
    remarks_.add(begun.remarks);
    remarks_.add_details(begun.details);
    comm::agree(facts_.world, phase, [&] {
        if (facts_.world.is_root() && work_.validation) {
            facts_.validation_hash = static_cast<std::int64_t>(
                data::Audit::hash_of(*work_.validation) >> 1); // none is negative
        }
    });
    facts_.validation_hash =
        comm::all_reduce(facts_.world, facts_.validation_hash, comm::Reduce::maximum);
    facts_.code = same_code_hashes(facts_.world, facts_.deck());
    return begun;
}

std::vector<comm::TreeNode> OpenedRun::place_replicas() const {
    auto const replicas = static_cast<int>(facts_.deck().run.replicas);
    if (facts_.deck().run.placement == "even") {
        return comm::subtrees_of_ranks(replicas, facts_.world.size());
    }
    auto alone = facts_.deck();
    alone.communication.sync_batch_norm = false;
    auto samples = work_.samples;
    samples.targets = batch_targets(work_);
    return comm::subtrees_by_speed(replicas,
                                   measured_speeds(facts_.world, alone, another_model(alone, work_),
                                                   *work_.task, samples, facts_.device));
}

void OpenedRun::plan() {
    comm::agree(facts_.world, "planning the run", [&] {
        if (facts_.setup.privacy_key) {
            facts_.privacy = std::make_shared<Privacy const>(
                facts_.deck().privacy, secret_of_run(*facts_.setup.privacy_key, facts_.deck(),
                                                     {.data = work_.train->fingerprint(),
                                                      .content = facts_.data_content,
                                                      .model = work_.model->fingerprint(),
                                                      .teacher = work_.teacher,
                                                      .code = facts_.code,
                                                      .initial_weights = facts_.initial_weights}));
        }
        data_module_ = make_data_module(
            {facts_.world, facts_.deck(), work_, facts_.own_node(), facts_.device, facts_.privacy});
        course_.emplace(facts_.deck(), *data_module_);
        remark_on_length();
        if (facts_.deck().prune.pattern != "none") {
            PruneSchedule(facts_.deck().prune).require_within(course_->total_steps());
        }
        if (facts_.privacy) {
            remarks_.add(
                privacy_text(facts_.deck(), work_.train->samples(), course_->total_steps()));
        }
        audit_ = std::make_unique<RunAudit>(facts_.world, facts_.topology, facts_.deck(), work_);
        remarks_.add(audit_->remarks());
    });
    remarks_.add(facts_.setup.aside);
    remarks_.add(facts_.setup.without);
    if (facts_.setup.requeued) {
        remarks_.add(concat(
            "checkpoint.resume = ", facts_.deck().checkpoint.resume,
            " was for this job's first attempt: this attempt resumes from the newest checkpoint"));
    }
}

void OpenedRun::remark_on_length() {
    require_validation(facts_.deck(), data_module_->has(DataModule::Set::validation));
    LengthFacts const lengths{.steps_per_epoch = data_module_->steps_per_epoch(),
                              .max_steps = data_module_->max_steps(),
                              .samples = work_.train ? work_.train->samples() : 0,
                              .validates = data_module_->has(DataModule::Set::validation)};
    remarks_.add(limits_text(facts_.deck(), lengths));
    if (can_end_early(facts_.deck(), lengths)) {
        remarks_.add(early_end_text(facts_.deck(), work_.best_metric.name));
    }
    remarks_.add(idle_texts(facts_.deck(), lengths));
    if (auto const& found = facts_.setup.found) {
        remarks_.add(stretch_text(checkpoint::reader_of(*found)->record(), found->file.path(),
                                  facts_.deck(), lengths));
    }
}

void OpenedRun::note_initial_weights() {
    if (!facts_.setup.privacy_key) {
        return;
    }
    comm::agree(facts_.world, "reading the checkpoint", [&] {
        facts_.initial_weights =
            facts_.setup.found ? integer_of(checkpoint::reader_of(*facts_.setup.found)->record(),
                                            "initial_weights")
                               : static_cast<std::int64_t>(hash_of_tensors(*work_.model) >> 1);
    });
}

/// The fingerprint of files without checksums does not tell one sample from another.
void OpenedRun::note_data_content() {
    constexpr char const* key = "data_content";
    if (!facts_.setup.privacy_key) {
        return;
    }
    comm::agree(facts_.world, "reading data.train", [&] {
        auto const reader =
            facts_.setup.found ? checkpoint::reader_of(*facts_.setup.found) : nullptr;
        bool const is_known = !reader || reader->record().integers.contains(key);
        if (!facts_.world.is_root() || !is_known) { // a run of an earlier version keeps its noise
            return;
        }
        facts_.data_content = static_cast<std::int64_t>(data::Audit::content_of(*work_.train) >> 1);
        if (reader && reader->record().integers.at(key) != facts_.data_content) {
            throw Error(ExitCode::usage,
                        {"data.train is not what this run was trained on",
                         "the contents of its files have changed, and epsilon covers one unchanged "
                         "run",
                         "Copy the old files back, or start over with --checkpoint.resume none"});
        }
    });
    facts_.data_content =
        comm::all_reduce(facts_.world, facts_.data_content, comm::Reduce::maximum);
}

void OpenedRun::open_engine(BegunWork begun) {
    auto const rule = compute_check_rule(facts_.world, facts_.deck(), *data_module_, facts_.device);
    facts_.compares = rule.compares;
    remarks_.add(rule.remark);
    engine_.emplace(facts_, work_, std::move(begun.channels), std::move(begun.shapes));
    remarks_.add(graphs_text({.deck = facts_.deck(),
                              .ranks = facts_.world.size(),
                              .device = facts_.device,
                              .work = &work_}));
    auto const devices = concurrent_devices(facts_.deck().run, facts_.world.size());
    if (!devices.empty()) {
        std::vector<std::string> names;
        std::ranges::transform(devices, std::back_inserter(names), device_text);
        remarks_.add(concat("concurrent replicas on ", joined(names, ", ")));
        comm::name_devices(facts_.world, concat(names.front(), " and ", names.size() - 1, " more"));
    }
}

void OpenedRun::name_attempt() {
    facts_.attempt = concat(utc_now(), "-", new_token());
    comm::broadcast_text(facts_.world, facts_.attempt);
    std::replace(facts_.attempt.begin(), facts_.attempt.end(), ':', '-');
}

} // namespace lockstep::train
