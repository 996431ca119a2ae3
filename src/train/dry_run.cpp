#include "train/dry_run.hpp"

#include "base/clock.hpp"
#include "base/memory.hpp"
#include "batches/make_data_module.hpp"
#include "comm/agree.hpp"
#include "comm/topology.hpp"
#include "device/configure_torch.hpp"
#include "device/device.hpp"
#include "device/device_memory.hpp"
#include "device/precision.hpp"
#include "nn/shapes.hpp"
#include "step/batch_source.hpp"
#include "step/engine.hpp"
#include "train/graph_rule.hpp"

#include <limits>

#include "begun_work.hpp"
#include "course.hpp"
#include "decide.hpp"
#include "first_checkpoint.hpp"
#include "graph_stream.hpp"
#include "heap.hpp"

namespace lockstep::train {

struct DryRun::State {
    comm::Communicator const& world;
    config::Deck deck;
    torch::Device device = torch::kCPU;
    std::unique_ptr<GraphStream> stream{}; ///< around everything that computes
    Workload work{};
    std::string shapes{}; ///< as of BegunWork
    std::unique_ptr<Engine> engine{};
    std::unique_ptr<DataModule> data_module{};
    std::unique_ptr<BatchSource> batches{};
    DryRunSize size{};
    std::int64_t step = 0;
    double played_s = 0; ///< for the iteration that this step belongs to
};

DryRun::DryRun(comm::Communicator const& world, config::Deck deck)
    : state_(std::make_unique<State>(State{world, std::move(deck)})) {
    settle_heap(state_->deck);
    forget_peak_memory();
    auto& parts = *state_;
    auto const topology = comm::Topology::discover(world);
    std::uint64_t share = 0;
    comm::agree(world, "opening the data and the model", [&] {
        auto& run = parts.deck.run;
        settle_new(parts.deck, world.size());
        parts.device = choose_device(run, topology);
        configure_torch(run);
        parts.stream = std::make_unique<GraphStream>(parts.deck, world.size(), parts.device);
        configure_precision(parts.deck.precision, run.deterministic);
        share = memory_to_train_in(parts.device, topology.local_size);
        if (parts.device.is_cpu()) {
            limit_memory(share);
        } else {
            release_device_cache(parts.device);
            at::accelerator::resetPeakStats(parts.device.index());
        }
    });
    std::optional<checkpoint::Found> const found = found_for(world, parts.deck, {}, false);
    auto begun =
        begin_work(world, parts.deck,
                   {.found = found,
                    .ranks = world.size(),
                    .device = parts.device,
                    .check_size = fits_within(parts.deck, world.size(), parts.device, share)});
    parts.work = std::move(begun.work);
    parts.shapes = std::move(begun.shapes);
    parts.size.remarks = std::move(begun.remarks);
    comm::agree(world, "opening the data and the model", [&] {
        auto const replicas = static_cast<int>(parts.deck.run.replicas);
        auto const nodes = comm::subtrees_of_ranks(replicas, world.size());
        parts.data_module =
            make_data_module({world, parts.deck, parts.work,
                              nodes[static_cast<std::size_t>(world.rank())], parts.device});
        require_validation(parts.deck, parts.data_module->has(DataModule::Set::validation));
        if (auto const early = early_end_text(parts.deck, parts.work.best_metric.name);
            !early.empty()) {
            parts.size.remarks.push_back(early);
        }
        auto const steps_per_epoch = parts.data_module->steps_per_epoch();
        parts.size.steps_per_epoch = steps_per_epoch;
        parts.size.epochs = static_cast<double>(total_steps(parts.deck.train, steps_per_epoch,
                                                            parts.data_module->max_steps())) /
                            static_cast<double>(steps_per_epoch);
    });
    parts.engine = std::make_unique<Engine>(
        EngineParts::open({.world = world,
                           .deck = parts.deck,
                           .model = *parts.work.model,
                           .task = *parts.work.task,
                           .device = parts.device,
                           .another =
                               [&parts] {
                                   auto model = another_trained_model(parts.deck, parts.work);
                                   if (!parts.shapes.empty()) {
                                       nn::narrow(*model, parts.shapes);
                                   }
                                   return model;
                               },
                           .devices = concurrent_devices(parts.deck.run, world.size()),
                           .graphs = uses_graphs({.deck = parts.deck,
                                                  .ranks = world.size(),
                                                  .device = parts.device,
                                                  .work = &parts.work})}));
    auto const& engine = *parts.engine;
    auto const& data_module = *parts.data_module;
    parts.batches = parts.data_module->batches(0, std::numeric_limits<std::int64_t>::max());
    auto& size = parts.size;
    size.parameters = static_cast<double>(engine.layout().parameters);
    size.arena_bytes = static_cast<double>(engine.layout().size) * sizeof(float);
    size.checkpoint_bytes =
        first_checkpoint_bytes(parts.deck, parts.work, engine.layout(), parts.data_module->state());
    size.buckets = engine.exchange().partition().buckets();
    size.exchange = engine.exchange().name();
    size.follows = engine.has_gate();
    size.replicas = parts.deck.run.replicas;
    size.samples_per_step = data_module.samples_in_step(0);
    size.samples_per_epoch = data_module.samples_per_epoch();
    size.plays = parts.work.train == nullptr;
}

DryRun::~DryRun() = default;

DryRunSize const& DryRun::size() const noexcept {
    return state_->size;
}

DryRunStep DryRun::step() {
    auto& parts = *state_;
    auto const in_epoch = parts.step % parts.data_module->steps_per_epoch();
    Stopwatch watch;
    parts.data_module->prepare(parts.step);
    auto const preparing = watch.restart();
    parts.played_s = in_epoch == 0 ? preparing : parts.played_s;
    auto const share = parts.played_s / static_cast<double>(parts.data_module->steps_per_epoch());
    auto const outcome =
        parts.engine->step({.batches = *parts.batches,
                            .step = parts.step,
                            .micro_batches = parts.data_module->micro_batches(in_epoch),
                            .samples = parts.data_module->samples_in_step(in_epoch),
                            .rate = 0}); // as often as one likes: nothing changes
    synchronize(parts.device);
    ++parts.step;
    return {.whole = watch.seconds() + share,
            .data = outcome.local.data + share,
            .forward = outcome.local.forward,
            .backward = outcome.local.backward,
            .exposed = outcome.exchange.exposed_s,
            .imbalance = outcome.exchange.imbalance_s,
            .hidden = outcome.exchange.hidden_s,
            .update = outcome.update_s};
}

std::uint64_t DryRun::free_bytes() const {
    return state_->device.is_cpu() ? available_memory() : memory_to_train_in(state_->device, 1);
}

std::uint64_t DryRun::peak_bytes() const {
    auto const& device = state_->device;
    return device.is_cpu() ? peak_memory() : static_cast<std::uint64_t>(device_memory(device).peak);
}

} // namespace lockstep::train
