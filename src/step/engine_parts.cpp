#include "step/engine_parts.hpp"

#include "arena/same_model.hpp"
#include "base/memory.hpp"
#include "base/recorder.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/wait_scope.hpp"
#include "device/place.hpp"
#include "exchange/choose_exchange.hpp"
#include "exchange/power_sgd_exchange.hpp"
#include "lockstep/base/error.hpp"
#include "nn/freezing.hpp"
#include "nn/named_code.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::train {

namespace {

StepSums::Form form_of(task::Task const& task, Layout const& layout) {
    return {static_cast<int>(task.figures().size()), static_cast<int>(task.training_counts()),
            layout.entries.size()};
}

ExchangeNeeds needs_of(EngineSetup const& setup, std::vector<comm::TreeNode> const& nodes,
                       Layout const& layout, std::size_t payload) {
    auto const& communication = setup.deck.communication;
    return {.nodes = nodes,
            .size = layout.size,
            .step_sums = form_of(setup.task, layout).count(),
            .payload = payload,
            .sums_everywhere = setup.deck.optimizer.update == "replicated",
            .shards_gradients = setup.deck.optimizer.update == "sharded-gradients" ||
                                setup.deck.optimizer.update == "fully-sharded",
            .shards_parameters = setup.deck.optimizer.update == "fully-sharded",
            .hosts = setup.hosts,
            .matrices = communication.compression == "powersgd"
                            ? matrices_of(layout, communication.powersgd_rank)
                            : std::vector<Matrix>{},
            .seed = static_cast<std::uint64_t>(setup.deck.run.seed)};
}

constexpr char const* other_types = "the model has parameters of other types than float32";

/// What needs all parameters between two steps; empty: nothing does.
std::string why_not_lent(config::Deck const& deck) {
    return deck.optimizer.ema > 0         ? "optimizer.ema averages all parameters"
           : deck.prune.pattern != "none" ? "prune.pattern compares all parameters"
           : deck.task.kind == "ppo"      ? "the model plays between steps (task.kind = ppo)"
                                          : "";
}

void refuse_loans(comm::Communicator const& world, std::string const& why) {
    comm::agree(world, "preparing the engine", [&] {
        throw Error(ExitCode::usage,
                    {"optimizer.update = fully-sharded is not available here",
                     concat(why, ", but parameters are fetched only when they are read"),
                     "Set optimizer.update = sharded-gradients"});
    });
}

std::vector<Buffers> kept_of(EngineSetup const& setup, comm::TreeNode own) {
    std::vector<Buffers> kept;
    while (!setup.deck.communication.broadcast_buffers &&
           static_cast<int>(kept.size()) < own.count) {
        kept.emplace_back(setup.model);
    }
    return kept;
}

} // namespace

std::unique_ptr<EngineParts> EngineParts::open(EngineSetup setup) {
    auto const& world = setup.world;
    auto const replicas = static_cast<int>(setup.deck.run.replicas);
    auto nodes =
        setup.nodes.empty() ? comm::subtrees_of_ranks(replicas, world.size()) : setup.nodes;
    auto layout = Layout::of(setup.model);
    Buffers first(setup.model);
    require_same_model(world, layout, setup.model);
    auto exchange = choose_exchange(world, setup.deck.communication, setup.device,
                                    needs_of(setup, nodes, layout, first.bytes().size()));
    std::unique_ptr<EngineParts> parts(new EngineParts(std::move(setup), std::move(nodes),
                                                       std::move(layout), std::move(first),
                                                       std::move(exchange)));
    parts->make_instances();
    parts->make_layer_sums();
    parts->make_pruning();
    parts->make_gate();
    return parts;
}

EngineParts::EngineParts(EngineSetup given, std::vector<comm::TreeNode> of_ranks, Layout of_model,
                         Buffers of_first, std::unique_ptr<comm::Exchange> chosen)
    : setup(std::move(given)), world(setup.world), communication(setup.deck.communication),
      replicas(static_cast<int>(setup.deck.run.replicas)), layout(std::move(of_model)),
      nodes(std::move(of_ranks)), told(form_of(setup.task, layout)), buffers(std::move(of_first)),
      kept_buffers(kept_of(setup, own_node())), exchange(std::move(chosen)),
      arena_(layout, borrowed(exchange->parameters(), layout.size, setup.device)),
      owned(exchange->partition().owned(world.rank())),
      updated(exchange->sums_everywhere() ? std::vector<Range>{{0, layout.size}} : owned) {}

void require_concurrent(config::Communication const& communication, bool concurrent, int replicas,
                        int ranks) {
    // Sequentially, layers that speak with other replicas in the middle of forward would wait for
    // ever.
    if (communication.sync_batch_norm && !concurrent && replicas > ranks) {
        throw Error(ExitCode::usage,
                    {"communication.sync-batch-norm cannot be used with several replicas on a rank",
                     "these replicas must run concurrently, but an exported program with random "
                     "operators, such as dropout, runs only one replica at a time",
                     "Start one rank for each replica, or export the model without dropout"});
    }
}

/// The rank's shards of the first weights, then all of them by the exchange: the replicas start
/// alike whatever their modules held.
void EngineParts::make_instances() {
    bool const lends = exchange->lends();
    if (lends && std::ranges::any_of(layout.entries, [](ParameterRange const& entry) {
            return entry.type != "Float";
        })) {
        refuse_loans(world, other_types);
    }
    if (!lends) { // else a device has never had all parameters
        place(setup.model, setup.device);
    }
    arena_.fill_from(setup.model, updated);
    exchange->publish();
    bool const concurrent =
        setup.another && setup.model.runs_on_threads() &&
        (setup.deck.run.mode == "dp" || communication.sync_batch_norm || setup.devices.size() > 1);
    require_concurrent(communication, concurrent, replicas, world.size());
    instances.emplace(
        RankInstances::Setup{.model = setup.model,
                             .count = concurrent ? static_cast<std::size_t>(own_node().count) : 1,
                             .another = setup.another,
                             .device = setup.device,
                             .devices = setup.devices},
        layout, arena_);
    if (lends) {
        place(setup.model, setup.device); // its buffers
        return_freed_memory();            // of the parameters as they were made
    }
}

void EngineParts::make_layer_sums() {
    if (!communication.sync_batch_norm || replicas == 1) {
        return;
    }
    layers_world.emplace(world.duplicate());
    layer_sums = std::make_unique<ThreadReplicaSums>(
        own_node(), replicas,
        [this](std::span<double> by_replica) {
            comm::sum_with_deadline(*layers_world, by_replica, timeout_s());
        },
        timeout_s());
}

void EngineParts::make_pruning() {
    auto const& prune = setup.deck.prune;
    if (prune.pattern != "none") {
        comm::agree(world, "looking for weights to remove", [&] {
            pruning = std::make_unique<Pruning>(prune, layout, whole().parameters(), updated);
        });
    }
}

GatherSums EngineParts::gather_sums() const {
    if (exchange->sums_everywhere()) {
        return {};
    }
    return [this](std::span<double> sums) { comm::sum_with_deadline(world, sums, timeout_s()); };
}

/// Layers that talk with other ranks in the middle of forward would wait for ranks that wait for
/// parameters; code of a user's may read them past LibTorch's operators.
void EngineParts::make_gate() {
    auto why = why_no_gate();
    bool const lends = setup.deck.optimizer.update == "fully-sharded";
    if (why.empty() && lends) {
        why = why_not_lent(setup.deck);
    }
    if (why.empty()) {
        gate = std::make_unique<ParameterGate>(*exchange, arena_, world);
    } else if (lends) {
        refuse_loans(world, why);
    }
}

/// Why a forward cannot begin before all parameters are there; empty: it can.
std::string EngineParts::why_no_gate() const {
    auto const& deck = setup.deck;
    if (!nn::named_code(deck).empty() || !setup.model.reads_by_operators()) {
        return "the model may read its parameters past LibTorch's operators";
    }
    if (layer_sums) {
        return "the model's layers wait for other ranks in forward "
               "(communication.sync-batch-norm)";
    }
    if (instances->models().size() != 1) {
        return "replicas run concurrently (run.mode = dp)";
    }
    if (arena_.has_followers()) {
        return other_types;
    }
    return exchange->lends() || (exchange->can_publish_later() && setup.device.is_cpu())
               ? ""
               : "the exchange publishes all parameters at once";
}

void EngineParts::publish(bool followed) const {
    comm::WaitScope const wait(world, comm::Wait::exchange);
    Scope const scope("publishing parameters", -1, ScopeKind::communication);
    exchange->begin_publish();
    if (exchange->lends()) {
        return;
    }
    if (!followed || !gate) {
        exchange->wait_whole();
        arena_.refresh();
    }
}

Arena const& EngineParts::whole() const {
    if (!exchange->is_whole()) {
        comm::WaitScope const wait(world, comm::Wait::message);
        exchange->wait_whole();
    }
    return arena_;
}

std::vector<std::size_t> EngineParts::thaw() {
    for (auto* const model : instances->models()) {
        nn::thaw(*model, setup.frozen);
    }
    return layout.thaw(setup.frozen);
}

} // namespace lockstep::train
