#include "step/engine.hpp"

#include "arena/arena.hpp"
#include "arena/buffers.hpp"
#include "arena/whole_array.hpp"
#include "base/clock.hpp"
#include "base/hash.hpp"
#include "base/random.hpp"
#include "base/recorder.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "comm/wait_scope.hpp"
#include "exchange/choose_exchange.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/base/signals.hpp"
#include "nn/named_code.hpp"
#include "step/histograms.hpp"

#include <algorithm>
#include <cmath>

#include "step_sums.hpp"

namespace lockstep::train {

namespace {

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

/// What this rank still has of its gradients, and zeros for the rest.
torch::Tensor kept_gradients(torch::Tensor const& gradients, std::vector<Range> const& owned,
                             std::string const& update) {
    if (update != "sharded-gradients" && update != "fully-sharded") {
        return gradients;
    }
    auto const kept = torch::zeros(gradients.sizes());
    for (auto const& range : owned) {
        kept.narrow(0, range.first, range.count())
            .copy_(gradients.narrow(0, range.first, range.count()));
    }
    return kept;
}

/// Null: every pass runs eagerly.
std::unique_ptr<StepGraphs> graphs_of(EngineSetup const& setup) {
    if (!setup.graphs) {
        return nullptr;
    }
    return std::make_unique<StepGraphs>(make_graph_recorder(setup.device),
                                        setup.deck.run.graphs == "auto" ? StepGraphs::Memory::enough
                                                                        : StepGraphs::Memory::any);
}

} // namespace

Engine::Engine(std::unique_ptr<EngineParts> parts)
    : parts_(std::move(parts)), seed_(static_cast<std::uint64_t>(parts_->setup.deck.run.seed)),
      optimizer_(parts_->setup.deck.optimizer, parts_->layout, parts_->own().parameters(),
                 parts_->updated),
      privacy_(parts_->setup.privacy),
      local_({parts_->instances->models(), parts_->setup.task, parts_->layout, parts_->buffers,
              parts_->kept_buffers, parts_->own_node(), parts_->setup.device, *parts_->exchange,
              parts_->world, parts_->setup.deck.precision, parts_->layer_sums.get(),
              rounding_of(parts_->communication), graphs_of(parts_->setup),
              privacy_ ? privacy_->clip() : 0,
              concat("model.name = ", parts_->setup.deck.model.name),
              !nn::named_code(parts_->setup.deck).empty(), parts_->gate.get()}),
      loss_scale_(parts_->setup.deck.precision),
      compression_scale_(compression_scale(parts_->setup.deck)),
      state_({parts_->layout, parts_->own(), parts_->buffers, parts_->setup.model, optimizer_,
              parts_->owned, parts_->world.is_root(), !parts_->exchange->lends(),
              parts_->exchange->carried(), parts_->kept_buffers, parts_->own_node().first,
              parts_->replicas,
              parts_->pruning ? parts_->pruning->state() : ReplicaState::MoreState{}}) {
    auto const& hosts = parts_->setup.host_of_rank;
    if (hosts.size() > 1) {
        check_.emplace(ComputeCheck::Setup{.world = parts_->world,
                                           .layout = parts_->layout,
                                           .buffers = parts_->buffers,
                                           .model = parts_->setup.model,
                                           .rotation = CheckRotation(parts_->nodes, hosts),
                                           .host_of_rank = hosts});
    }
}

void Engine::set_correction(nn::Model const& model) {
    torch::NoGradGuard const no_grad;
    auto const named = model.named_parameters();
    auto const flat = torch::zeros({parts_->layout.size});
    for (auto const& entry : parts_->layout.entries) {
        flat.narrow(0, entry.first, entry.count).copy_(named[entry.name].reshape(-1));
    }
    optimizer_.set_correction(flat.to(parts_->own().parameters().device()));
}

/// What this rank tells the others after its forward and backward.
StepSums Engine::own_sums(StepInput const& input) const {
    StepSums sums(parts_->told);
    for (auto const& result : local_.results()) {
        sums.add(StepSums::loss, result.loss_sum);
        sums.add(StepSums::weight, result.weight);
        for (std::size_t i = 0; i < result.figures.size(); ++i) {
            sums.add(StepSums::figures + i, result.figures[i]);
        }
        sums.add_counts(result.counts);
    }
    sums.signals() = input.signal != 0 ? 1 : 0;
    sums.hindrances() = input.copy_hindrance ? input.copy_hindrance() : 0;
    if (parts_->world.is_root()) {
        sums.tell(input.minutes_passed, input.copy_due, input.profile);
    }
    sums.differences() = input.check ? check_term_ : 0;
    sums.set_used(local_.used());
    return sums;
}

StepOutcome Engine::step(StepInput const& input) {
    StepOutcome outcome;
    if (input.thawed && !is_thawed_) {
        thaw(input.step);
    }
    if (parts_->pruning && parts_->pruning->removes_weights() &&
        parts_->pruning->schedule().is_due(input.step)) {
        outcome.pruned = prune(input.step);
    }
    auto const scale = loss_scale_.value() * compression_scale_;
    auto const buffers_before = privacy_ ? hash64(parts_->buffers.bytes()) : 0;
    auto gradients = compute(input, scale, outcome);
    auto sums = own_sums(input);
    auto const reduced = comm::in_phase(parts_->world, comm::Phase::exchange, [&] {
        return reduce(std::move(gradients), sums, outcome);
    });
    settle_check(sums, input, outcome);
    local_.restore_buffers();
    take(sums, input, outcome);
    if (privacy_) {
        require_same_buffers(buffers_before, input.step + 1);
    }
    if (outcome.weight > 0) { // a step that has drawn no sample says nothing of parameters
        settle_unused(sums, input.step + 1);
    }
    comm::in_phase(parts_->world, comm::Phase::update, [&] {
        Stopwatch watch;
        torch::NoGradGuard const no_grad;
        auto const verdict = judge(input, reduced.squares, scale, outcome);
        if (verdict.applies) {
            apply(input, verdict, outcome, watch);
        }
        outcome.update_s = watch.restart();
        parts_->publish(input.followed);
    });
    outcome.exchange = parts_->exchange->take_cost(); // whole only now
    record_exchange(reduced.computed_ns, reduced.exchanged_ns, outcome.exchange.imbalance_s);
    return outcome;
}

/// Before anything is made of the sums.
void Engine::settle_check(StepSums& sums, StepInput const& input, StepOutcome& outcome) {
    if (!input.check) {
        return;
    }
    if (sums.differences() != 0) {
        check_->convict(*input.check, local_, input.step + 1);
    }
    outcome.checked = check_->pass();
}

/// `steps` are done before. Which parameters get gradients is to be found out again.
void Engine::thaw(std::int64_t steps) {
    is_thawed_ = true;
    if (thawed_after_ < 0) {
        thawed_after_ = steps - loss_scale_.skipped() - steps_of_others_;
    }
    optimizer_.begin_later(parts_->layout, parts_->thaw(), thawed_after_);
    local_.expect_trained();
    idle_.clear();
    graph_is_known_ = false;
}

/// Forward and backward of this rank's replicas; buckets leave meanwhile.
comm::GradientSum Engine::compute(StepInput const& input, double scale, StepOutcome& outcome) {
    auto const key = random_key(seed_, Stream::dropout, {static_cast<std::uint64_t>(input.step)});
    auto sum = parts_->exchange->begin(static_cast<double>(input.samples) * scale);
    parts_->instances->copy_parameters();
    if (input.check) {
        check_->begin(*input.check, local_);
    }
    comm::in_phase(parts_->world, comm::Phase::compute,
                   [&] { local_.run(input.batches, input.micro_batches, key, sum, scale); });
    outcome.local = local_.times();
    outcome.graphs = local_.take_graph_use();
    if (input.check) {
        check_term_ = comm::in_phase(parts_->world, comm::Phase::compute,
                                     [&] { return check_->compare(*input.check, local_); });
    }
    return sum;
}

/// Sums over all replicas, and the moments between which that was.
Engine::Reduced Engine::reduce(comm::GradientSum gradients, StepSums& sums,
                               StepOutcome& outcome) const {
    comm::WaitScope const wait(parts_->world, comm::Wait::exchange);
    Stopwatch const watch;
    Reduced reduced{.squares = {}, .computed_ns = recorder_now_ns()};
    reduced.squares = std::move(gradients).finish(sums.values(), parts_->buffers.bytes());
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
    outcome.copy_due = sums.copy_due();
    outcome.copy_hindrances = sums.hindrances();
    outcome.profile = sums.profile();
    if (sums.signals() != 0) {
        find_signal(input.signal, outcome);
    }
    if (!std::isfinite(outcome.loss_sum)) {
        throw_bad_loss(parts_->world, parts_->nodes, local_.results(), input.step + 1);
    }
}

/// Whether the step is applied, by what its gradients are divided, and as which step it counts.
/// Divided once, by the weight of all replicas and the loss scale, after the sum; the update does
/// it in passing. With privacy by what is drawn on average: how many samples were drawn is a
/// secret. Where nothing counts, as in a step of tokens that are not learnt, gradients are 0, but
/// for what a compressing exchange has left over from earlier steps.
Engine::Verdict Engine::judge(StepInput const& input, std::span<double const> squares, double scale,
                              StepOutcome& outcome) {
    double const norm = std::sqrt(comm::tree_sum(squares));
    double const weight = outcome.weight == 0 ? static_cast<double>(input.samples) : outcome.weight;
    double const divisor = (privacy_ ? static_cast<double>(input.samples) : weight) * scale;
    outcome.grad_norm = norm / divisor;
    bool const finite = std::isfinite(outcome.grad_norm);
    outcome.loss_scale = loss_scale_.value();
    outcome.skipped = !finite;
    if (!finite && !loss_scale_.skips()) {
        throw_bad_gradient(parts_->world, parts_->layout,
                           {*parts_->exchange, squares,
                            kept_gradients(local_.gradients(), parts_->owned,
                                           parts_->setup.deck.optimizer.update)},
                           input.step + 1);
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
        privacy_->add_noise(local_.gradients(), parts_->layout, parts_->updated, input.step);
    }
    if (input.histograms) {
        outcome.gradients = gradient_histograms(parts_->world, {.layout = parts_->layout,
                                                                .values = local_.gradients(),
                                                                .owned = parts_->owned,
                                                                .divisor = verdict.divisor});
        watch.restart();
    }
    if (parts_->pruning) {
        parts_->pruning->before_update(parts_->own().parameters(), local_.gradients(),
                                       verdict.divisor, input.step);
    }
    update(input.rate, verdict.step, verdict.divisor, outcome.grad_norm);
}

/// Finds the signal of the highest rank that has one; one that only the launcher sent counts last.
void Engine::find_signal(int own, StepOutcome& outcome) const {
    constexpr int codes = 256;
    constexpr int least = ended_by_launcher;
    auto const place = parts_->world.rank() + (own == ended_by_launcher ? 0 : parts_->world.size());
    auto const found = comm::all_reduce(parts_->world, own != 0 ? place * codes + own - least : -1,
                                        comm::Reduce::maximum);
    outcome.signal = found % codes + least;
    outcome.signalled_rank = found / codes % parts_->world.size();
}

/// Every rank has all parameters between two steps, and finds the same weights.
std::string Engine::prune(std::int64_t steps) {
    PruneMask mask;
    parts_->whole();
    comm::agree(parts_->world, concat("pruning after step ", steps), [&] {
        mask = parts_->pruning->choose(parts_->own().parameters(), steps, parts_->gather_sums());
    });
    // They may be one array for the host: nobody changes it before all have read it, which `agree`
    // has made sure of.
    parts_->pruning->remove(mask, parts_->own().parameters(), optimizer_);
    parts_->publish();
    return concat("pruned after step ", steps, ": ", count_text(mask.count), " of ",
                  count_text(mask.candidates), " weights are 0");
}

torch::Tensor Engine::prune_scores() const {
    return parts_->pruning->scores(parts_->whole().parameters(), parts_->gather_sums());
}

std::vector<torch::Tensor> Engine::whole_state() const {
    torch::NoGradGuard const no_grad;
    std::vector<torch::Tensor> arrays;
    for (std::size_t i = 0; i < optimizer_.state_names().size(); ++i) {
        arrays.push_back(whole_of(optimizer_.state(i), parts_->updated, parts_->layout.size,
                                  parts_->gather_sums()));
    }
    return arrays;
}

void Engine::take_state(std::vector<torch::Tensor> const& arrays) {
    torch::NoGradGuard const no_grad;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        take_owned(arrays[i], parts_->updated, optimizer_.state(i));
    }
}

void Engine::update(double rate, std::int64_t step, double divisor, double norm) {
    UpdateStep update{.rate = rate, .step = step, .divisor = divisor, .norm = norm};
    update.gather = parts_->gather_sums();
    update.idle = idle_;
    optimizer_.update(parts_->own().parameters(), local_.gradients(), update);
}

/// A parameter without gradient on every replica is left as it is, as in torch.
void Engine::settle_unused(StepSums& sums, std::int64_t step) {
    idle_ = sums.idle();
    bool any = false;
    for (std::size_t entry = 0; entry < idle_.size(); ++entry) {
        if (!parts_->layout.entries[entry].trained) {
            idle_[entry] = 0; // never moved, nothing to say
        }
        if (idle_[entry] != 0 && !parts_->communication.unused_parameters) {
            throw AgreedError(
                ExitCode::usage,
                {concat("parameter ", parts_->layout.entries[entry].name, " got no gradient"),
                 "no replica's loss depends on this parameter",
                 "Set communication.unused-parameters = true, or remove the parameter from the "
                 "model"},
                0, concat(comm::place_of_rank(parts_->world, 0), " in training at step ", step));
        }
        any = any || idle_[entry] != 0;
    }
    if (!any) {
        idle_.clear();
    } else if (parts_->communication.static_graph && !graph_is_known_) {
        local_.expect_unused(idle_);
    }
    graph_is_known_ = true;
}

void Engine::lend(std::function<void()> const& pass) const {
    if (!lends()) {
        parts_->whole();
        pass();
        return;
    }
    try {
        parts_->gate->open([&pass] {
            pass();
            return true;
        });
    } catch (...) {
        parts_->exchange->meet(); // the others wait there
        throw;
    }
    parts_->exchange->meet();
}

AveragedWeights Engine::averaged_weights() {
    if (lends()) {
        return {};
    }
    auto const& arena = parts_->whole(); // also for the weights as they are
    if (!optimizer_.averages()) {
        return {};
    }
    AveragedWeights averaged(arena.parameters(), [&arena] { arena.refresh(); });
    // Nobody overwrites them before all have kept a copy: they may be one array for the host.
    comm::barrier_with_deadline(parts_->world, parts_->timeout_s());
    optimizer_.write_average(arena.parameters());
    parts_->publish();
    return averaged;
}

/// Refuses a model that changes its buffers; none that our rules know does: they refuse batch norm.
void Engine::require_same_buffers(std::uint64_t before, std::int64_t step) const {
    if (hash64(parts_->buffers.bytes()) != before) {
        throw AgreedError(
            ExitCode::usage,
            {"the model has changed its buffers, which privacy.noise does not allow",
             "no noise is added to buffers, so the buffers would reveal training samples",
             "Use a model that does not change its buffers in training"},
            0, concat(comm::place_of_rank(parts_->world, 0), " in training at step ", step));
    }
}

std::string Engine::memory_text() const {
    auto const place = [](char const* what, void const* at) {
        auto const address = reinterpret_cast<std::uintptr_t>(at);
        return concat(what, " at ", at, ", aligned to ", bytes_text(address & -address));
    };
    return concat(place("parameters", parts_->own().parameters().const_data_ptr()), "; ",
                  place("gradients", local_.gradients().const_data_ptr()));
}

trace::HeldMemory Engine::held_memory() const {
    trace::HeldMemory held{
        .parameters = static_cast<std::int64_t>(parts_->own().parameters().nbytes()),
        .gradients = static_cast<std::int64_t>(local_.gradients().nbytes()),
        .optimizer = 0,
        .on_device = !parts_->own().parameters().is_cpu(),
    };
    for (std::size_t at = 0; at < optimizer_.state_names().size(); ++at) {
        held.optimizer += static_cast<std::int64_t>(optimizer_.state(at).nbytes());
    }
    return held;
}

} // namespace lockstep::train
