#include "opened_run.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/inject.hpp"
#include "base/memory.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "lockstep/train/load_weights.hpp"
#include "nn/shapes.hpp"
#include "train/configure_torch.hpp"
#include "train/device.hpp"
#include "train/device_memory.hpp"
#include "train/model_changes.hpp"
#include "train/precision.hpp"
#include "train/privacy_key.hpp"
#include "train/workload_remarks.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <iterator>
#include <unistd.h>
#include <utility>

#include "calibration.hpp"
#include "data_cache.hpp"
#include "earlier_records.hpp"
#include "finite_weights.hpp"
#include "first_weights.hpp"
#include "length.hpp"
#include "make_data_module.hpp"
#include "narrow_as_noted.hpp"
#include "placement.hpp"
#include "privacy_rules.hpp"
#include "prune_schedule.hpp"
#include "smaller_model.hpp"
#include "teacher.hpp"

namespace lockstep::train {

namespace {

std::int64_t elements_of(nn::Model const& model) {
    std::int64_t elements = 0;
    for (auto const& tensor : model.parameters()) {
        elements += tensor.numel();
    }
    return elements;
}

std::vector<std::int64_t> sample_shape_of(Workload const& work) {
    auto const& shape = work.samples.inputs.front().shape;
    return {shape.begin(), shape.end()};
}

} // namespace

OpenedRun::OpenedRun(comm::Communicator const& over, comm::Topology places, RunSetup settled)
    : world(over), topology(std::move(places)), setup(std::move(settled)) {
    choose_device();
    open_work();
    nodes = place_replicas();
    prepare_pruning();
    fill_model();
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
    if (!setup.found && !deck().model.weights.empty()) {
        first_weights_ = open_first_weights(world, deck().model.weights);
    }
    auto datasets = open_datasets_together(deck(), world);
    comm::agree(world, phase, [&] {
        datasets.origin = origin_of(setup.found, first_weights_, setup.force);
        work = open_workload_within(deck(), std::move(datasets), world.size(), share);
        std::ranges::for_each(work.remarks, [&](auto const& text) { remark(text); });
        for (auto& text : workload_remarks(deck(), work)) {
            remark(std::move(text));
        }
        if (world.is_root() && work.validation) {
            validation_hash = static_cast<std::int64_t>(data::Audit::hash_of(*work.validation) >>
                                                        1); // none is negative
        }
    });
    validation_hash = comm::all_reduce(world, validation_hash, comm::Reduce::maximum);
    code = same_code_hashes(world, deck());
    remark(add_teacher(world, deck(), device, work));
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
                            .samples = work.train ? work.train->samples() : 0};
    remark(limits_text(deck(), facts));
    if (auto const& found = setup.found) {
        remark(stretch_text(checkpoint::reader_of(*found)->record(), found->file.path(), deck(),
                            facts));
    }
}

void OpenedRun::prepare_pruning() {
    if (deck().prune.pattern == "channels") {
        comm::agree(world, "looking for channels to remove", [&] {
            require_channels_can_go(deck(), work);
            channels.emplace(deck().prune, *work.model, sample_shape_of(work));
            auto const trial = channels->one_of_each(*work.model, Layout::of(*work.model));
            require_runs(*model_without(trial, *work.model, another_model(deck(), work)),
                         sample_shape_of(work));
        });
    }
}

void OpenedRun::fill_model() {
    auto const whole = elements_of(*work.model);
    if (!setup.found && world.is_root()) {
        remark(lost_checkpoints(deck().run.directory));
    }
    std::shared_ptr<nn::Model> plain; // without the rounding of layers
    if (deck().quantise.aware) {
        comm::agree(world, "preparing for int8", [&] { plain = model_for_int8(deck(), work); });
    }
    if (first_weights_) {
        comm::agree(world, "reading model.weights",
                    [&] { remark(warning_of_model_changes(deck(), *first_weights_)); });
        remark(load_first_weights(world, plain ? *plain : *work.model, *first_weights_));
    }
    auto const file = deck().model.own.find("file");
    if (!setup.found && deck().model.weights.empty() && file != deck().model.own.end()) {
        comm::agree(world, "looking at the weights of model.file",
                    [&] { require_finite_weights(*work.model, file->second); });
    }
    if (plain && !setup.found) {
        comm::agree(world, "calibrating", [&] { begin_scales(*plain, deck(), work); });
    }
    if (setup.found) {
        comm::agree(world, "reading the checkpoint", [&] {
            auto const reader = checkpoint::reader_of(*setup.found);
            narrow_as_noted(*work.model, reader->record());
            if (setup.privacy_key) {
                initial_weights = integer_of(reader->record(), "initial_weights");
            }
        });
    } else if (setup.privacy_key) {
        initial_weights = static_cast<std::int64_t>(hash_of_tensors(*work.model) >> 1);
    }
    if (elements_of(*work.model) != whole) {
        shapes = nn::shapes_text(*work.model);
    }
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
    engine = std::make_unique<Engine>(Engine::Parts{.world = world,
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
                                                    .privacy = privacy});
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
    attempt = concat(utc_now(), "-", ::getpid());
    comm::broadcast_text(world, attempt);
    std::replace(attempt.begin(), attempt.end(), ':', '-');
}

} // namespace lockstep::train
