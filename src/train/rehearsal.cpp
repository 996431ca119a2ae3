#include "lockstep/train/rehearsal.hpp"

#include "lockstep/base/clock.hpp"
#include "lockstep/base/memory.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/comm/topology.hpp"
#include "lockstep/train/batch_source.hpp"
#include "lockstep/train/device.hpp"
#include "lockstep/train/engine.hpp"
#include "lockstep/train/precision.hpp"

#include <ATen/DeviceAccelerator.h>

#include <limits>
#include <optional>

#include "opening.hpp"
#include "step_batches.hpp"

namespace lockstep::train {

struct Rehearsal::Parts {
    comm::Communicator const& world;
    config::Deck deck;
    torch::Device device = torch::kCPU;
    Workload work{};
    std::optional<data::TrainPlan> plan{};
    std::unique_ptr<Engine> engine{};
    std::optional<data::Augmentation> augmentation{};
    std::unique_ptr<data::Loader> loader{};
    std::unique_ptr<LoadedBatches> batches{};
    RehearsedSize size{};
    std::int64_t step = 0;
};

Rehearsal::Rehearsal(comm::Communicator const& world, config::Deck deck)
    : parts_(std::make_unique<Parts>(Parts{world, std::move(deck)})) {
    keep_large_blocks();
    forget_peak_memory();
    auto& parts = *parts_;
    auto const topology = comm::Topology::discover(world);
    auto const share = available_memory() / static_cast<std::uint64_t>(topology.local_size);
    comm::agree(world, "opening the data and the model", [&] {
        auto& run = parts.deck.run;
        settle_new(parts.deck, world.size());
        parts.device = choose_device(run, topology);
        configure_torch(run);
        configure_precision(parts.deck.precision, run.deterministic);
        if (parts.device.is_cpu()) {
            limit_memory(share);
        } else {
            release_device_cache(parts.device);
            at::accelerator::resetPeakStats(parts.device.index());
        }
        auto const replicas = static_cast<int>(run.replicas);
        parts.work = open_workload(parts.deck, [&](double parameters) {
            require_memory(memory_needed(parameters, parts.deck.optimizer,
                                         (replicas + world.size() - 1) / world.size(),
                                         world.size()),
                           share);
        });
        parts.augmentation.emplace(augmentation_of(parts.deck, parts.work.samples));
        parts.plan.emplace(train_plan(parts.deck, *parts.work.train));
        parts.size.steps_per_epoch = parts.plan->steps_per_epoch();
        parts.size.epochs =
            static_cast<double>(total_steps(parts.deck.train, parts.size.steps_per_epoch)) /
            static_cast<double>(parts.size.steps_per_epoch);
    });
    parts.engine = std::make_unique<Engine>(
        Engine::Parts{.world = world,
                      .deck = parts.deck,
                      .model = *parts.work.model,
                      .task = *parts.work.task,
                      .device = parts.device,
                      .another = [&parts] { return another_model(parts.deck, parts.work); }});
    auto const& engine = *parts.engine;
    auto const& plan = *parts.plan;
    StepBatches const batches(plan, engine.nodes()[static_cast<std::size_t>(world.rank())],
                              parts.deck.optimizer.accumulate,
                              {0, std::numeric_limits<std::int64_t>::max()});
    auto const& data = parts.deck.data;
    parts.loader = std::make_unique<data::Loader>(
        *parts.work.train, batches.request(),
        data::LoaderOptions{static_cast<int>(data.workers), static_cast<int>(data.prefetch),
                            [&parts, batches](std::int64_t k, data::Batch& batch) {
                                parts.augmentation->apply(batch, batches.epoch(k));
                            }});
    parts.batches = std::make_unique<LoadedBatches>(*parts.loader, parts.work.samples.inputs,
                                                    parts.work.samples.targets, parts.device);
    auto& size = parts.size;
    size.parameters = static_cast<double>(engine.layout().parameters);
    size.arena_bytes = static_cast<double>(engine.layout().size) * sizeof(float);
    size.state_arrays = static_cast<double>(state_names(parts.deck.optimizer).size());
    size.buckets = engine.exchange().partition().buckets();
    size.exchange = engine.exchange().name();
    size.replicas = parts.deck.run.replicas;
    size.samples_per_step = plan.samples_in_step(0);
    size.samples_per_epoch = plan.samples_per_epoch();
}

Rehearsal::~Rehearsal() = default;

RehearsedSize const& Rehearsal::size() const noexcept {
    return parts_->size;
}

RehearsedStep Rehearsal::step() {
    auto& parts = *parts_;
    auto const in_epoch = parts.step % parts.plan->steps_per_epoch();
    Stopwatch const watch;
    auto const outcome = parts.engine->step({.batches = *parts.batches,
                                             .step = parts.step,
                                             .micro_batches = parts.plan->micro_batches(in_epoch),
                                             .samples = parts.plan->samples_in_step(in_epoch),
                                             .rate = 0}); // as often as one likes: nothing changes
    if (parts.device.is_cuda()) {
        torch::cuda::synchronize(parts.device.index());
    }
    ++parts.step;
    return {.whole = watch.seconds(),
            .data = outcome.local.data,
            .forward = outcome.local.forward,
            .backward = outcome.local.backward,
            .exposed = outcome.exchange.exposed_s,
            .imbalance = outcome.exchange.imbalance_s,
            .hidden = outcome.exchange.hidden_s,
            .update = outcome.update_s};
}

std::uint64_t Rehearsal::peak_bytes() const {
    auto const& device = parts_->device;
    return device.is_cpu() ? peak_memory() : static_cast<std::uint64_t>(device_memory(device).peak);
}

} // namespace lockstep::train
