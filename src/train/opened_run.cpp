#include "opened_run.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/inject.hpp"
#include "base/memory.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "nn/shapes.hpp"
#include "train/privacy_key.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "batches/data_cache.hpp"
#include "batches/make_data_module.hpp"
#include "batches/privacy_rules.hpp"
#include "begun_work.hpp"
#include "device/configure_torch.hpp"
#include "device/device.hpp"
#include "device/device_memory.hpp"
#include "device/precision.hpp"
#include "earlier_records.hpp"
#include "length.hpp"
#include "model_files/first_weights.hpp"
#include "model_files/smaller_model.hpp"
#include "optimizer/prune_schedule.hpp"
#include "placement.hpp"

namespace lockstep::train {

OpenedRun::OpenedRun(comm::Communicator const& over, comm::Topology places, RunSetup settled)
    : world(over), topology(std::move(places)), setup(std::move(settled)) {
    choose_device();
    open_work();
    nodes = place_replicas();
    note_initial_weights();
    note_data_content();
    plan();
    keep_near(deck().data, {work.train.get(), work.validation.get(), work.test.get()}, world);
    make_engine();
    name_attempt();
}

comm::TreeNode OpenedRun::own_node() const {
    return nodes[static_cast<std::size_t>(world.rank())];
}

void OpenedRun::remark(std::string text) {
    if (!text.empty()) {
        remarks.push_back(std::move(text));
    }
}

void OpenedRun::choose_device() {
    comm::agree(world, "start-up", [&] {
        require_known_fault();
        auto on_host = topology;
        if (setup.place) {
            on_host.local_rank = setup.place->rank;
            on_host.local_size = setup.place->ranks;
        }
        device = train::choose_device(deck().run, on_host);
        configure_torch(deck().run);
        // Concurrent replicas have streams of their own, and no graphs.
        bool const concurrent = deck().run.mode == "dp" || deck().communication.sync_batch_norm ||
                                !concurrent_devices(deck().run, world.size()).empty();
        if (deck().run.graphs && !device.is_cpu() && !concurrent) {
            stream_.emplace(c10::impl::VirtualGuardImpl(device.type())
                                .getStreamFromGlobalPool(device, /*isHighPriority=*/false));
        }
        remark(configure_precision(deck().precision, deck().run.deterministic));
        remark(slow_precision_text(deck().precision, device.is_cpu()));
        if (!deck().communication.broadcast_buffers && deck().run.replicas > 1) {
            remark("each replica keeps its own buffers; evaluation and exports use the buffers of "
                   "replica 0");
        }
        if (world.is_root()) {
            File::append(setup.directory->path() / "log.txt"); // what goes wrong is told there
        }
    });
    require_one_kind(world, device);
}

void OpenedRun::open_work() {
    constexpr char const* phase = "opening the data and the model";
    std::uint64_t share = 0;
    comm::agree(world, phase, [&] {
        share = memory_to_train_in(device, setup.place ? setup.place->ranks : topology.local_size);
        if (device.is_cpu()) {
            limit_memory(share);
        }
    });
    auto begun = begin_work(world, deck(),
                            {.found = setup.found,
                             .force = setup.force,
                             .ranks = world.size(),
                             .device = device,
                             .check_size = fits_within(deck(), world.size(), share)});
    work = std::move(begun.work);
    channels = std::move(begun.channels);
    shapes = std::move(begun.shapes);
    if (!setup.found && world.is_root()) {
        remark(lost_checkpoints(deck().run.directory));
    }
    std::ranges::for_each(begun.remarks, [&](auto& text) { remark(std::move(text)); });
    comm::agree(world, phase, [&] {
        if (world.is_root() && work.validation) {
            validation_hash = static_cast<std::int64_t>(data::Audit::hash_of(*work.validation) >>
                                                        1); // none is negative
        }
    });
    validation_hash = comm::all_reduce(world, validation_hash, comm::Reduce::maximum);
    code = same_code_hashes(world, deck());
}

std::vector<comm::TreeNode> OpenedRun::place_replicas() const {
    auto const replicas = static_cast<int>(deck().run.replicas);
    if (deck().run.placement == "even") {
        return comm::subtrees_of_ranks(replicas, world.size());
    }
    auto alone = deck();
    alone.communication.sync_batch_norm = false;
    auto samples = work.samples;
    samples.targets = batch_targets(work);
    return comm::subtrees_by_speed(
        replicas,
        measured_speeds(world, alone, another_model(alone, work), *work.task, samples, device));
}

void OpenedRun::plan() {
    comm::agree(world, "planning the run", [&] {
        if (setup.privacy_key) {
            privacy = std::make_shared<Privacy const>(
                deck().privacy, secret_of_run(*setup.privacy_key, deck(),
                                              {.data = work.train->fingerprint(),
                                               .content = data_content,
                                               .model = work.model->fingerprint(),
                                               .teacher = work.teacher,
                                               .code = code,
                                               .initial_weights = initial_weights}));
        }
        data_module = make_data_module({world, deck(), work, own_node(), device, privacy});
        course.emplace(deck(), *data_module);
        remark_on_length();
        if (deck().prune.pattern != "none") {
            PruneSchedule(deck().prune).require_within(course->total_steps());
        }
        if (privacy) {
            remark(privacy_text(deck(), work.train->samples(), course->total_steps()));
        }
        audit = std::make_unique<RunAudit>(world, topology, deck(), work);
        std::ranges::for_each(audit->remarks(), [&](auto const& text) { remark(text); });
    });
    if (!setup.aside.empty()) {
        remark(setup.aside);
    }
    if (setup.requeued) {
        remark(concat(
            "checkpoint.resume = ", deck().checkpoint.resume,
            " was for this job's first attempt: this attempt resumes from the newest checkpoint"));
    }
}

void OpenedRun::remark_on_length() {
    LengthFacts const facts{.steps_per_epoch = data_module->steps_per_epoch(),
                            .max_steps = data_module->max_steps(),
                            .samples = work.train ? work.train->samples() : 0,
                            .validates = data_module->has(DataModule::Set::validation)};
    remark(limits_text(deck(), facts));
    std::ranges::for_each(idle_texts(deck(), facts), [&](auto const& text) { remark(text); });
    if (auto const& found = setup.found) {
        remark(stretch_text(checkpoint::reader_of(*found)->record(), found->file.path(), deck(),
                            facts));
    }
}

void OpenedRun::note_initial_weights() {
    if (!setup.privacy_key) {
        return;
    }
    comm::agree(world, "reading the checkpoint", [&] {
        initial_weights =
            setup.found
                ? integer_of(checkpoint::reader_of(*setup.found)->record(), "initial_weights")
                : static_cast<std::int64_t>(hash_of_tensors(*work.model) >> 1);
    });
}

/// The fingerprint of files without checksums does not tell one sample from another.
void OpenedRun::note_data_content() {
    constexpr char const* key = "data_content";
    if (!setup.privacy_key) {
        return;
    }
    comm::agree(world, "reading data.train", [&] {
        auto const reader = setup.found ? checkpoint::reader_of(*setup.found) : nullptr;
        bool const is_known = !reader || reader->record().integers.contains(key);
        if (!world.is_root() || !is_known) { // a run of an earlier version keeps its noise
            return;
        }
        data_content = static_cast<std::int64_t>(data::Audit::content_of(*work.train) >> 1);
        if (reader && reader->record().integers.at(key) != data_content) {
            throw Error(ExitCode::usage,
                        {"data.train is not what this run was trained on",
                         "the contents of its files have changed, and epsilon covers one unchanged "
                         "run",
                         "Copy the old files back, or start over with --checkpoint.resume none"});
        }
    });
    data_content = comm::all_reduce(world, data_content, comm::Reduce::maximum);
}

std::string OpenedRun::remove_channels(std::int64_t steps) {
    std::string told;
    auto const scores = engine->prune_scores();
    auto arrays = engine->whole_state();
    auto const layout = engine->layout();
    auto const scale = engine->loss_scale();
    auto const of_others = engine->steps_of_others();
    std::shared_ptr<nn::Model> smaller;
    comm::agree(world, concat("removing channels after step ", steps), [&] {
        auto const removal = channels->choose(*work.model, layout, scores, steps);
        if (removal.is_any()) {
            smaller = model_without(removal, *work.model, another_model(deck(), work));
            arrays = arrays_without(removal, layout, Layout::of(*smaller), arrays);
            told = concat("after step ", steps, ", ", removal.text(channels->whole()));
        }
    });
    if (smaller) {
        engine.reset(); // nobody reads its shared memory any more: `agree` has made sure of that
        work.model = std::move(smaller);
        shapes = nn::shapes_text(*work.model);
        make_engine();
        engine->take_state(arrays);
        engine->loss_scale() = scale;
        engine->set_steps_of_others(of_others);
    }
    return told;
}

void OpenedRun::make_engine() {
    auto const devices = concurrent_devices(deck().run, world.size());
    engine = std::make_unique<Engine>(EngineParts::open({.world = world,
                                                         .deck = deck(),
                                                         .model = *work.model,
                                                         .task = *work.task,
                                                         .device = device,
                                                         .another =
                                                             [this] {
                                                                 auto model =
                                                                     another_model(deck(), work);
                                                                 if (!shapes.empty()) {
                                                                     nn::narrow(*model, shapes);
                                                                 }
                                                                 return model;
                                                             },
                                                         .nodes = nodes,
                                                         .devices = devices,
                                                         .privacy = privacy}));
    if (!setup.correction.empty()) {
        comm::agree(world, "reading the correction of gradients", [&] {
            auto const model = another_model(deck(), work);
            load_weights(*model, checkpoint::VerifiedFile(setup.correction));
            engine->set_correction(*model);
        });
    }
    if (!attempt.empty()) {
        return; // made again for a smaller model: the start has said it
    }
    remark(engine->graphs_remark());
    if (!devices.empty()) {
        std::vector<std::string> names;
        std::ranges::transform(devices, std::back_inserter(names), device_text);
        remark(concat("concurrent replicas on ", joined(names, ", ")));
        comm::name_devices(world, concat(names.front(), " and ", names.size() - 1, " more"));
    }
}

void OpenedRun::name_attempt() {
    attempt = concat(utc_now(), "-", new_token());
    comm::broadcast_text(world, attempt);
    std::replace(attempt.begin(), attempt.end(), ':', '-');
}

} // namespace lockstep::train
