#include "step/engine.hpp"

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "base/inject.hpp"
#include "base/random.hpp"
#include "base/recorder.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "comm/wait_scope.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/base/signals.hpp"
#include "nn/named_code.hpp"

#include <algorithm>
#include <cmath>

#include "arena/arena.hpp"
#include "arena/buffers.hpp"
#include "arena/same_model.hpp"
#include "arena/whole_array.hpp"
#include "device/place.hpp"
#include "exchange/power_sgd_exchange.hpp"
#include "step/histograms.hpp"
#include "step_sums.hpp"

namespace lockstep::train {

namespace {

ExchangeNeeds needs_of(Engine::Parts const& parts, std::vector<comm::TreeNode> const& nodes,
                       Layout const& layout, std::size_t step_sums, std::size_t payload) {
    auto const& communication = parts.deck.communication;
    return {.nodes = nodes,
            .size = layout.size,
            .step_sums = step_sums,
            .payload = payload,
            .sums_everywhere = parts.deck.optimizer.update == "replicated",
            .hosts = parts.hosts,
            .matrices = communication.compression == "powersgd"
                            ? matrices_of(layout, communication.powersgd_rank)
                            : std::vector<Matrix>{},
            .seed = static_cast<std::uint64_t>(parts.deck.run.seed)};
}

/// Records what finish was: the wait for ranks that still computed, then the exposed exchange.
void record_exchange(std::int64_t begin_ns, std::int64_t end_ns, double imbalance_s) {
    auto const arrived_ns =
        std::clamp(begin_ns + static_cast<std::int64_t>(1e9 * imbalance_s), begin_ns, end_ns);
    record_scope(
        "waiting for slower ranks",
        {.begin_ns = begin_ns, .end_ns = arrived_ns, .kind = ScopeKind::imbalance, .name = {}});
    record_scope(
        "exposed exchange",
        {.begin_ns = arrived_ns, .end_ns = end_ns, .kind = ScopeKind::communication, .name = {}});
}

/// A power of two that makes a sum over all samples of a step about as large as their mean: the
/// gradients are those of the sum, which float16 could not hold.
double compression_scale(config::Deck const& deck) {
    auto const samples =
        static_cast<double>(deck.run.replicas * deck.data.batch * deck.optimizer.accumulate);
    return rounding_of(deck.communication) == comm::Rounding::fp16
               ? std::exp2(-std::ceil(std::log2(samples)))
               : 1;
}

ChosenGraphs graphs_of(Engine::Parts const& parts, bool several_instances) {
    ChosenGraphs none;
    if (!parts.deck.run.graphs) {
        return none;
    }
    if (parts.privacy) {
        none.remark =
            "run.graphs has no effect: with privacy.noise, each pass processes only one sample";
        return none;
    }
    if (injects_nan()) {
        none.remark =
            "run.graphs has no effect: LOCKSTEP_INJECT = nan needs steps that run eagerly";
        return none;
    }
    return choose_graphs(parts.model, parts.device, several_instances);
}

} // namespace

Engine::Engine(Parts parts)
    : world_(parts.world), communication_(parts.deck.communication),
      replicas_(static_cast<int>(parts.deck.run.replicas)),
      seed_(static_cast<std::uint64_t>(parts.deck.run.seed)),
      figures_(static_cast<int>(parts.task.figures().size())),
      counts_(static_cast<int>(parts.task.training_counts())), layout_(Layout::of(parts.model)),
      nodes_(parts.nodes.empty() ? comm::subtrees_of_ranks(replicas_, world_.size()) : parts.nodes),
      buffers_(parts.model), kept_buffers_(kept_buffers(parts.model)), exchange_([&] {
          require_same_model(world_, layout_, parts.model);
          return choose_exchange(world_, communication_, parts.device,
                                 needs_of(parts, nodes_, layout_, empty_sums().values().size(),
                                          buffers_.bytes().size()));
      }()),
      arena_(layout_, borrowed(exchange_->parameters(), layout_.size, parts.device)),
      updated_(exchange_->sums_everywhere() ? std::vector<Range>{{0, layout_.size}}
                                            : exchange_->partition().owned(world_.rank())),
      instances_(make_instances(parts)), sums_(make_sums()),
      graphs_(graphs_of(parts, instances_.models().size() > 1)),
      optimizer_(parts.deck.optimizer, layout_, arena_.parameters(), updated_),
      pruning_(make_pruning(parts.deck.prune)), privacy_(parts.privacy),
      local_({instances_.models(), parts.task, layout_, buffers_, kept_buffers_, own_node(),
              parts.device, *exchange_, world_, parts.deck.precision, sums_.get(),
              rounding_of(communication_), std::move(graphs_.graphs),
              privacy_ ? privacy_->clip() : 0, concat("model.name = ", parts.deck.model.name),
              !nn::named_code(parts.deck).empty()}),
      loss_scale_(parts.deck.precision), compression_scale_(compression_scale(parts.deck)),
      state_({layout_, arena_, buffers_, parts.model, optimizer_,
              exchange_->partition().owned(world_.rank()), world_.is_root(), exchange_->carried(),
              kept_buffers_, own_node().first, replicas_,
              pruning_ ? pruning_->state() : ReplicaState::MoreState{}}) {}

void Engine::set_correction(nn::Model const& model) {
    torch::NoGradGuard const no_grad;
    auto const named = model.named_parameters();
    auto const flat = torch::zeros({layout_.size});
    for (auto const& entry : layout_.entries) {
        flat.narrow(0, entry.first, entry.count).copy_(named[entry.name].reshape(-1));
    }
    optimizer_.set_correction(flat.to(arena_.parameters().device()));
}

std::unique_ptr<Pruning> Engine::make_pruning(config::Prune const& prune) const {
    std::unique_ptr<Pruning> pruning;
    if (prune.pattern != "none") {
        comm::agree(world_, "looking for weights to remove", [&] {
            pruning = std::make_unique<Pruning>(prune, layout_, arena_.parameters(), updated_);
        });
    }
    return pruning;
}

StepSums Engine::empty_sums() const {
    return StepSums({figures_, counts_, layout_.entries.size()});
}

std::vector<Buffers> Engine::kept_buffers(nn::Model const& model) const {
    std::vector<Buffers> kept;
    auto const own = own_node().count;
    while (!communication_.broadcast_buffers && static_cast<int>(kept.size()) < own) {
        kept.emplace_back(model);
    }
    return kept;
}

/// The rank's shards of the first weights, then all of them by the exchange: the replicas start
/// alike whatever their modules held.
RankInstances Engine::make_instances(Parts const& parts) {
    place(parts.model, parts.device);
    arena_.fill_from(parts.model, updated_);
    exchange_->publish();
    // Layers that speak with other replicas in the middle of forward would wait for ever
    // sequentially.
    bool const concurrent =
        parts.another && parts.model.runs_on_threads() &&
        (parts.deck.run.mode == "dp" || communication_.sync_batch_norm || parts.devices.size() > 1);
    if (communication_.sync_batch_norm && !concurrent && replicas_ > world_.size()) {
        throw Error(ExitCode::usage,
                    {"communication.sync-batch-norm cannot be used with several replicas on a rank",
                     "these replicas must run concurrently, but an exported program with random "
                     "operators, such as dropout, runs only one replica at a time",
                     "Start one rank for each replica, or export the model without dropout"});
    }
    auto const own = own_node().count;
    return {{.model = parts.model,
             .count = concurrent ? static_cast<std::size_t>(own) : 1,
             .another = parts.another,
             .device = parts.device,
             .devices = parts.devices},
            layout_,
            arena_};
}

std::unique_ptr<ThreadReplicaSums> Engine::make_sums() {
    if (!communication_.sync_batch_norm || replicas_ == 1) {
        return nullptr;
    }
    layers_world_.emplace(world_.duplicate());
    return std::make_unique<ThreadReplicaSums>(
        own_node(), replicas_,
        [this](std::span<double> by_replica) {
            comm::sum_with_deadline(*layers_world_, by_replica, timeout_s());
        },
        timeout_s());
}

/// What this rank tells the others after its forward and backward.
StepSums Engine::own_sums(StepInput const& input) const {
    auto sums = empty_sums();
    for (auto const& result : local_.results()) {
        sums.add(StepSums::loss, result.loss_sum);
        sums.add(StepSums::weight, result.weight);
        for (std::size_t i = 0; i < result.figures.size(); ++i) {
            sums.add(StepSums::figures + i, result.figures[i]);
        }
        sums.add_counts(result.counts);
    }
    sums.signals() = input.signal != 0 ? 1 : 0;
    if (world_.is_root()) {
        sums.tell(input.minutes_passed, input.profile);
    }
    sums.set_used(local_.used());
    return sums;
}

StepOutcome Engine::step(StepInput const& input) {
    StepOutcome outcome;
    if (pruning_ && pruning_->removes_weights() && pruning_->schedule().is_due(input.step)) {
        outcome.pruned = prune(input.step);
    }
    auto const scale = loss_scale_.value() * compression_scale_;
    auto const buffers_before = privacy_ ? hash64(buffers_.bytes()) : 0;
    compute(input, scale, outcome);
    auto sums = own_sums(input);
    auto const reduced =
        comm::in_phase(world_, comm::Phase::exchange, [&] { return reduce(sums, outcome); });
    // The first model ran other replicas last, or on other ranks.
    buffers_.restore_into(*instances_.models().front());
    take(sums, input, outcome);
    if (privacy_) {
        require_same_buffers(buffers_before, input.step + 1);
    }
    if (outcome.weight > 0) { // a step that has drawn no sample says nothing of parameters
        settle_unused(sums, input.step + 1);
    }
    comm::in_phase(world_, comm::Phase::update, [&] {
        Stopwatch watch;
        torch::NoGradGuard const no_grad;
        auto const verdict = judge(input, scale, outcome);
        if (verdict.applies) {
            apply(input, verdict, outcome, watch);
        }
        outcome.update_s = watch.restart();
        publish();
    });
    outcome.exchange = exchange_->cost(); // whole only now
    record_exchange(reduced.computed_ns, reduced.exchanged_ns, outcome.exchange.imbalance_s);
    return outcome;
}

/// Forward and backward of this rank's replicas; buckets leave meanwhile.
void Engine::compute(StepInput const& input, double scale, StepOutcome& outcome) {
    auto const key = random_key(seed_, Stream::dropout, {static_cast<std::uint64_t>(input.step)});
    exchange_->set_unit(static_cast<double>(input.samples) * scale);
    exchange_->begin();
    instances_.copy_parameters();
    comm::in_phase(world_, comm::Phase::compute,
                   [&] { local_.run(input.batches, input.micro_batches, key, scale); });
    outcome.local = local_.times();
    outcome.graphs = local_.take_graph_use();
}

/// Sums over all replicas, and the moments between which that was.
Engine::Reduced Engine::reduce(StepSums& sums, StepOutcome& outcome) {
    comm::WaitScope const wait(world_, comm::Wait::exchange);
    Stopwatch const watch;
    Reduced reduced{.computed_ns = recorder_now_ns()};
    exchange_->finish(sums.values(), buffers_.bytes());
    reduced.exchanged_ns = recorder_now_ns();
    outcome.waited_s = watch.seconds();
    return reduced;
}

/// What the sums over all replicas say.
void Engine::take(StepSums& sums, StepInput const& input, StepOutcome& outcome) const {
    outcome.loss_sum = sums.total(StepSums::loss);
    outcome.weight = sums.total(StepSums::weight);
    outcome.figures = sums.total_figures();
    outcome.counts = sums.counts();
    outcome.minutes_passed = sums.minutes_passed();
    outcome.profile = sums.profile();
    if (sums.signals() != 0) {
        find_signal(input.signal, outcome);
    }
    if (!std::isfinite(outcome.loss_sum)) {
        throw_bad_loss(input.step + 1);
    }
}

/// Whether the step is applied, by what its gradients are divided, and as which step it counts.
/// Divided once, by the weight of all replicas and the loss scale, after the sum; the update does
/// it in passing. With privacy by what is drawn on average: how many samples were drawn is a
/// secret. Where nothing counts, as in a step of tokens that are not learnt, gradients are 0, but
/// for what a compressing exchange has left over from earlier steps.
Engine::Verdict Engine::judge(StepInput const& input, double scale, StepOutcome& outcome) {
    double const norm = std::sqrt(comm::tree_sum(exchange_->squares()));
    double const weight = outcome.weight == 0 ? static_cast<double>(input.samples) : outcome.weight;
    double const divisor = (privacy_ ? static_cast<double>(input.samples) : weight) * scale;
    outcome.grad_norm = norm / divisor;
    bool const finite = std::isfinite(outcome.grad_norm);
    outcome.loss_scale = loss_scale_.value();
    outcome.skipped = !finite;
    if (!finite && !loss_scale_.skips()) {
        throw_not_finite(input.step + 1);
    }
    // Skipped steps do not count for the rule's bias correction.
    auto const step = input.step + 1 - loss_scale_.skipped() - steps_of_others_;
    loss_scale_.update(finite);
    return {.applies = finite, .divisor = divisor, .step = step};
}

/// Changes this rank's shards; `watch` measures the update without the histograms.
void Engine::apply(StepInput const& input, Verdict const& verdict, StepOutcome& outcome,
                   Stopwatch& watch) {
    if (privacy_) {
        privacy_->add_noise(local_.gradients(), layout_, updated_, input.step);
    }
    if (input.histograms) {
        outcome.gradients =
            gradient_histograms(world_, {.layout = layout_,
                                         .values = local_.gradients(),
                                         .owned = exchange_->partition().owned(world_.rank()),
                                         .divisor = verdict.divisor});
        watch.restart();
    }
    if (pruning_) {
        pruning_->before_update(arena_.parameters(), local_.gradients(), verdict.divisor,
                                input.step);
    }
    update(input.rate, verdict.step, verdict.divisor, outcome.grad_norm);
}

void Engine::publish() {
    {
        comm::WaitScope const wait(world_, comm::Wait::exchange);
        Scope const scope("publishing parameters", -1, ScopeKind::communication);
        exchange_->publish();
    }
    arena_.refresh();
}

/// Finds the signal of the highest rank that has one; one that only the launcher sent counts last.
void Engine::find_signal(int own, StepOutcome& outcome) const {
    constexpr int codes = 256;
    constexpr int least = ended_by_launcher;
    auto const place = world_.rank() + (own == ended_by_launcher ? 0 : world_.size());
    auto const found = comm::all_reduce(world_, own != 0 ? place * codes + own - least : -1,
                                        comm::Reduce::maximum);
    outcome.signal = found % codes + least;
    outcome.signalled_rank = found / codes % world_.size();
}

/// Every rank has all parameters between two steps, and finds the same weights.
std::string Engine::prune(std::int64_t steps) {
    PruneMask mask;
    comm::agree(world_, concat("pruning after step ", steps),
                [&] { mask = pruning_->choose(arena_.parameters(), steps, gather_sums()); });
    // They may be one array for the host: nobody changes it before all have read it, which `agree`
    // has made sure of.
    pruning_->remove(mask, arena_.parameters(), optimizer_);
    exchange_->publish();
    arena_.refresh();
    return concat("pruned after step ", steps, ": ", count_text(mask.count), " of ",
                  count_text(mask.candidates), " weights are 0");
}

/// Empty where every rank owns the whole arena.
GatherSums Engine::gather_sums() const {
    if (exchange_->sums_everywhere()) {
        return {};
    }
    return [this](std::span<double> sums) { comm::sum_with_deadline(world_, sums, timeout_s()); };
}

torch::Tensor Engine::prune_scores() const {
    return pruning_->scores(arena_.parameters(), gather_sums());
}

std::vector<torch::Tensor> Engine::whole_state() const {
    torch::NoGradGuard const no_grad;
    std::vector<torch::Tensor> arrays;
    for (std::size_t i = 0; i < optimizer_.state_names().size(); ++i) {
        arrays.push_back(whole_of(optimizer_.state(i), updated_, layout_.size, gather_sums()));
    }
    return arrays;
}

void Engine::take_state(std::vector<torch::Tensor> const& arrays) {
    torch::NoGradGuard const no_grad;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        take_owned(arrays[i], updated_, optimizer_.state(i));
    }
}

void Engine::update(double rate, std::int64_t step, double divisor, double norm) {
    UpdateStep update{.rate = rate, .step = step, .divisor = divisor, .norm = norm};
    update.gather = gather_sums();
    update.idle = idle_;
    optimizer_.update(arena_.parameters(), local_.gradients(), update);
}

/// A parameter without gradient on every replica is left as it is, as in torch.
void Engine::settle_unused(StepSums& sums, std::int64_t step) {
    idle_ = sums.idle();
    bool any = false;
    for (std::size_t entry = 0; entry < idle_.size(); ++entry) {
        if (!layout_.entries[entry].trained) {
            idle_[entry] = 0; // never moved, nothing to say
        }
        if (idle_[entry] != 0 && !communication_.unused_parameters) {
            throw AgreedError(
                ExitCode::usage,
                {concat("parameter ", layout_.entries[entry].name, " got no gradient"),
                 "no replica's loss depends on this parameter",
                 "Set communication.unused-parameters = true, or remove the parameter from the "
                 "model"},
                0, concat(comm::place_of_rank(world_, 0), " in training at step ", step));
        }
        any = any || idle_[entry] != 0;
    }
    if (!any) {
        idle_.clear();
    } else if (communication_.static_graph && !graph_is_known_) {
        local_.expect_unused(idle_);
    }
    graph_is_known_ = true;
}

AveragedWeights Engine::averaged_weights() {
    if (!optimizer_.averages()) {
        return {};
    }
    AveragedWeights averaged(arena_.parameters(), [this] { arena_.refresh(); });
    // Nobody overwrites them before all have kept a copy: they may be one array for the host.
    comm::barrier_with_deadline(world_, timeout_s());
    optimizer_.write_average(arena_.parameters());
    exchange_->publish();
    arena_.refresh();
    return averaged;
}

} // namespace lockstep::train
