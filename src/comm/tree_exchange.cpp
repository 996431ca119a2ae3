#include "tree_exchange.hpp"

#include "base/clock.hpp"
#include "base/recorder.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "pending.hpp"

namespace lockstep::comm {

namespace {

TreeSum sum_over_ranks(Partial const& partial, std::vector<TreeNode> const& nodes,
                       Rounding rounding) {
    std::vector<TreeNode> leaves;
    for (int const rank : partial.ranks) {
        leaves.push_back(nodes[static_cast<std::size_t>(rank)]);
    }
    return {partial.node, leaves, rounding};
}

} // namespace

TreeExchange::TreeExchange(TreeExchangeOptions const& options, HostMemory memory, Hosts hosts,
                           std::vector<Partial> const& partials, int rank, Wires wires,
                           std::string name)
    : Exchange(options.partition), options_(options), memory_(std::move(memory)),
      hosts_(std::move(hosts)), rank_(rank), host_(hosts_.host(rank)), local_(hosts_.local(rank)),
      wires_(std::move(wires)), wire_(wires_.sums.get()), name_(std::move(name)),
      arrivals_(memory_.slots(), local_,
                static_cast<int>(hosts_.ranks[static_cast<std::size_t>(host_)].size()),
                std::chrono::duration<double>(options.timeout_seconds)),
      done_(memory_.done_slots(), local_, arrivals_.size(),
            std::chrono::duration<double>(options.timeout_seconds)),
      between_({wire_, options_, hosts_,
                HostSchedule(root_of(options.nodes), partials, hosts_, rank,
                             options.route.value_or(Route::direct)),
                memory_, rank_}),
      gather_({wire_, options_.partition, between_.schedule(), between_.slots()}),
      summed_at_ns_(static_cast<std::size_t>(partition_.buckets())) {
    for (auto const& partial : partials) {
        if (partial.host == host_) {
            host_sums_.push_back(sum_over_ranks(partial, options_.nodes, options_.rounding));
            partials_.push_back(partial);
        }
    }
    served_ = one_host() ? std::vector<int>{rank_} : between_.schedule().served();
    if (!one_host()) {
        all_squares_.resize(options_.step_sums + reduction_blocks());
    }
    if (wires_.loans) {
        loans_ = std::make_unique<ParameterLoans>(
            ParameterLoans::Setup{*wires_.loans, options_.partition, hosts_, memory_, arrivals_,
                                  rank_, options_.timeout_seconds});
    }
}

TreeExchange::~TreeExchange() = default;

/// Parameters may still be on their way.
void TreeExchange::begin_sum(double /*unit*/) {
    cost_ = std::exchange(late_, {});
    cost_is_taken_ = false;
    start_ = publishing_ ? published_ + static_cast<std::uint32_t>(partition_.buckets())
                         : arrivals_.count();
    announced_ = summed_ = discarded_ = 0;
    done_before_ = done_.count();
    in_backward_ = true;
    if (loans_) {
        give_back_all(); // of an evaluation, or of who needed all
    }
    odd_step_ = !odd_step_;
    if (!publishing_) {
        begin_between();
    }
}

/// The gradients' messages and the parameters' share their room.
void TreeExchange::begin_between() {
    settle_imbalance(); // also of a step that was not published
    if (!one_host()) {
        between_.begin();
    }
}

void TreeExchange::bucket_ready(int /*index*/) {
    if (!loans_) {
        wait_whole(); // a rank without samples has not read them
    }
    ++announced_;
    arrivals_.arrive();
    progress();
}

/// Does what can be done without waiting.
void TreeExchange::progress() {
    Stopwatch const watch;
    while (summed_ < announced_ &&
           arrivals_.all_reached(start_ + static_cast<std::uint32_t>(summed_) + 1)) {
        sum_on_host(summed_);
        summed_at_ns_[static_cast<std::size_t>(summed_++)] = recorder_now_ns();
    }
    if (!one_host()) {
        wire_->progress();
        auto const before = between_.finished();
        between_.advance(summed_);
        record_finished(before);
    }
    serve();
    discard_done();
    if (in_backward_) {
        cost_.hidden_s += watch.seconds();
    }
}

/// Buckets that have come back from other hosts since there were `before` of them.
void TreeExchange::record_finished(int before) const {
    for (auto bucket = before; bucket < between_.finished(); ++bucket) {
        record_scope("bucket between hosts",
                     {.begin_ns = summed_at_ns_[static_cast<std::size_t>(bucket)],
                      .end_ns = recorder_now_ns(),
                      .number = bucket,
                      .kind = ScopeKind::travelling,
                      .name = {}});
    }
}

/// Nobody else touches these shards of the host's arrays: the sum of a partial goes where its first
/// rank's gradients lie.
void TreeExchange::sum_on_host(int bucket) {
    Scope const scope("sum of a bucket", bucket, ScopeKind::bucket);
    for (int const owner : served_) {
        auto const shard = partition_.shard(bucket, owner);
        for (std::size_t i = 0; i < partials_.size() && shard.count() > 0; ++i) {
            std::vector<float const*> sources;
            for (int const rank : partials_[i].ranks) {
                sources.push_back(gradients_of(rank) + shard.first);
            }
            cost_.bytes += static_cast<std::int64_t>(sizeof(float)) * shard.count() *
                           static_cast<std::int64_t>(sources.size() - 1);
            if (one_host()) {
                host_sums_[i].add(sources, memory_.destinations(local_, shard.first), shard.count(),
                                  memory_.squares() + shard.first / reduction_block);
            } else {
                float* const into = gradients_of(partials_[i].ranks.front()) + shard.first;
                host_sums_[i].add(sources, std::span(&into, 1), shard.count());
            }
        }
    }
}

void TreeExchange::finish_sum(std::span<double> step_sums, std::span<std::byte> payload) {
    in_backward_ = false;
    Stopwatch const watch;
    if (loans_) {
        give_back_all();
    }
    std::copy(step_sums.begin(), step_sums.end(), memory_.step_sums(local_, odd_step_));
    if (rank_ == 0) {
        std::copy(payload.begin(), payload.end(), memory_.payload(odd_step_));
    }
    if (!one_host()) { // while gradients travel
        payload_ = std::make_shared<std::vector<std::byte>>(payload.begin(), payload.end());
        payload_flight_ = wire_->flight(payload_);
        payload_flight_->broadcast(*payload_);
    }
    arrivals_.arrive_stamped();
    auto const computed = start_ + static_cast<std::uint32_t>(partition_.buckets()) + 1;
    if (one_host()) {
        // While others still compute, what they have given already is summed.
        while (summed_ < partition_.buckets()) {
            arrivals_.wait_all(start_ + static_cast<std::uint32_t>(summed_) + 1);
            progress();
        }
        arrivals_.wait_all(computed);
    } else {
        poll_until_summed(computed);
    }
    cost_.imbalance_s = arrivals_.behind();
    cost_.bytes += between_.bytes();
    cost_.messages += between_.messages();
    if (loans_) { // a rank that owns nothing of the last buckets has its sums before others
        loans_->meet();
    }
    between_.wait_sent();
    if (options_.sums_everywhere && !one_host()) {
        spread(gradients());
    }
    discard_done();
    arrivals_.arrive();
    arrivals_.wait_all(computed + 1);
    discard_done();
    share_step_sums(step_sums, payload);
    if (loans_) {
        loans_->wait_sent();
        cost_.bytes += loans_->take_bytes();
        cost_.messages += loans_->take_messages();
    }
    auto const exposed_s = std::max(0.0, watch.seconds() - cost_.imbalance_s);
    cost_.exposed_s += exposed_s;
    if (!one_host()) {
        compare_hosts(exposed_s);
    }
}

/// All ranks have their sums at about the same time, and it was shortest ago that a rank arrived on
/// the host whose rank came last: what others were exposed to beyond that was a wait for this rank.
/// It is found out while parameters are updated.
void TreeExchange::compare_hosts(double exposed_s) {
    exposed_s_ = exposed_s;
    min_exposed_s_ = std::make_shared<double>(exposed_s);
    min_flight_ = wire_->flight(min_exposed_s_);
    min_flight_->minimum(*min_exposed_s_);
}

void TreeExchange::settle_imbalance() {
    if (min_flight_) {
        min_flight_->wait(options_.timeout_seconds);
        min_flight_.reset();
        owed_s_ += exposed_s_ - *min_exposed_s_;
        pay_owed(spent());
    }
}

/// Where it is found out after the step's cost was taken, a later step's has to do.
void TreeExchange::pay_owed(ExchangeCost& cost) {
    auto const paid = std::clamp(cost.exposed_s, 0.0, owed_s_);
    cost.imbalance_s += paid;
    cost.exposed_s -= paid;
    owed_s_ -= paid;
}

/// Messages move only while MPI is called: no sleep on an arrival here.
void TreeExchange::poll_until_summed(std::uint32_t computed) {
    Backoff backoff(options_.timeout_seconds, "gradients from the other ranks",
                    wire_->longest_pause_s());
    while (between_.finished() < partition_.buckets() || !arrivals_.all_reached(computed)) {
        int const before = summed_ + between_.finished();
        progress();
        if (summed_ + between_.finished() == before) {
            backoff.pause();
        }
    }
}

/// Each value is non-zero on one rank only, so these sums are exact in any order.
void TreeExchange::share_step_sums(std::span<double> step_sums, std::span<std::byte> payload) {
    if (one_host()) {
        for (std::size_t i = 0; i < step_sums.size(); ++i) {
            step_sums[i] = 0;
            for (int other = 0; other < arrivals_.size(); ++other) {
                step_sums[i] += memory_.step_sums(other, odd_step_)[i];
            }
        }
        std::copy_n(memory_.payload(odd_step_), payload.size(), payload.begin());
        return;
    }
    auto const own = all_squares_.begin() + static_cast<std::ptrdiff_t>(options_.step_sums);
    std::fill(all_squares_.begin(), all_squares_.end(), 0);
    std::copy(step_sums.begin(), step_sums.end(), all_squares_.begin());
    for (auto const& range : partition_.owned(rank_)) {
        std::copy(memory_.squares() + range.first / reduction_block,
                  memory_.squares() + range.last / reduction_block,
                  own + range.first / reduction_block);
    }
    wire_->sum(all_squares_, options_.timeout_seconds);
    std::copy_n(all_squares_.begin(), step_sums.size(), step_sums.begin());
    payload_flight_->wait(options_.timeout_seconds);
    std::ranges::copy(*payload_, payload.begin());
}

/// Makes the shards of the summed gradients known to all ranks.
void TreeExchange::spread(float* array) {
    gather_.begin(array);
    gather_.wait(options_.timeout_seconds);
    cost_.bytes += gather_.bytes();
    cost_.messages += gather_.messages();
    for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
        for (int const owner : served_) {
            auto const shard = partition_.shard(bucket, owner);
            for (int other = 0; owner != rank_ && other < arrivals_.size(); ++other) {
                if (other != local_) {
                    std::copy(array + shard.first, array + shard.last,
                              memory_.gradients(other) + shard.first);
                }
            }
        }
    }
}

/// Memory for a few buckets is enough while backward does not run far ahead of the sums.
void TreeExchange::prepare_gradients(int index) {
    if (!options_.shards_gradients) {
        return;
    }
    if (loans_) {
        loans_->require();
    }
    auto const enough = std::min(index + 1 - gradient_buckets_ahead, announced_);
    if (discarded_ < enough) {
        Backoff backoff(options_.timeout_seconds, "gradients from the other ranks",
                        wire_ != nullptr ? wire_->longest_pause_s() : Backoff::shortest_pause_s);
        while (progress(), discarded_ < enough) {
            backoff.pause();
        }
    }
    auto const range = partition_.bucket(index);
    memory_.populate(gradients() + range.first, range.count());
}

/// Leaves only the sum of the own shard of a bucket that no rank of the host reads any more.
void TreeExchange::discard_done() {
    if (!options_.shards_gradients) {
        return;
    }
    auto done = static_cast<int>(done_.count() - done_before_);
    while (done < summed_ && (one_host() || between_.is_done(done))) {
        done_.arrive();
        ++done;
    }
    while (discarded_ < done &&
           done_.all_reached(done_before_ + static_cast<std::uint32_t>(discarded_) + 1)) {
        auto const bucket = partition_.bucket(discarded_);
        auto const own = partition_.shard(discarded_, rank_);
        memory_.discard(gradients() + bucket.first, own.first - bucket.first);
        memory_.discard(gradients() + own.last, bucket.last - own.last);
        ++discarded_;
    }
}

ExchangeCost TreeExchange::take_cost() {
    pay_owed(cost_);
    cost_is_taken_ = true;
    return cost_;
}

} // namespace lockstep::comm
