#pragma once

#include "base/expects.hpp"
#include "comm/partition.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::comm {

/// What exchanging the ranks' gradients cost in one step.
struct ExchangeCost {
    double imbalance_s = 0;    ///< waiting for ranks that still computed
    double exposed_s = 0;      ///< after all ranks had arrived: sums, messages, waits
    double hidden_s = 0;       ///< spent while backward ran
    std::int64_t bytes = 0;    ///< read from or sent to other ranks by this rank
    std::int64_t messages = 0; ///< sent to other hosts by this rank
};

/// A part of what an exchange carries from one step to the next, which a checkpoint has to hold.
struct Carried {
    std::string name;            ///< "compression/error"
    float* values = nullptr;     ///< this rank's values, on the device of its gradients
    std::int64_t count = 0;      ///< number of values
    std::int64_t first = 0;      ///< index of the first among all ranks' values
    std::int64_t elements = 0;   ///< of all ranks
    bool is_written_here = true; ///< false: another rank holds the same values and writes them
};

class Exchange;

/// Buckets of gradients that have memory while backward runs, at most, where gradients are sharded
/// and complete buckets leave.
constexpr int gradient_buckets_ahead = 4;

/// The sum of the gradients of one step, from Exchange::begin to `finish`. One that is dropped
/// before has been given up, with the exchange: an error ends the run. The exchange outlives it.
class GradientSum {
  public:
    GradientSum(GradientSum&& other) noexcept
        : exchange_(std::exchange(other.exchange_, nullptr)), announced_(other.announced_) {}

    /// Bucket `index` of this rank's gradients is final. Call it once per bucket, in order; a
    /// thread of backward may.
    ///
    /// Collective  as Exchange::begin
    /// Throws      Error 76 when another rank has failed
    void ready(int index);

    /// Waits until this rank's shards of the gradients hold the sum over all replicas (all of the
    /// gradients, where sums are everywhere). `step_sums`: on entry, values whose sum is exact in
    /// any order (whole numbers, or non-zero on one rank only); on return, their sums over all
    /// ranks. `payload`: rank 0's bytes, copied to all ranks.
    ///
    /// Collective  over all ranks, after all buckets
    /// Throws      Error 76 naming a rank that does not come
    /// Returns     sums of squares of the summed gradients of all ranks' shards, by reduction block
    ///             [reduction blocks]; valid until the next step
    std::span<double const> finish(std::span<double> step_sums, std::span<std::byte> payload) &&;

  private:
    friend class Exchange;
    explicit GradientSum(Exchange& exchange) : exchange_(&exchange) {}

    Exchange* exchange_; ///< null: it is finished
    int announced_ = 0;  ///< buckets
};

/// Sums gradients over all replicas and distributes updated parameters: the part of a step in which
/// ranks depend on each other. One step is begin, ready for every bucket in order, finish, the
/// caller's update of its own shards, publish. Parameters may still be on their way when the next
/// step has begun: who reads a bucket's waits for them first. Every wait ends at a deadline.
class Exchange {
  public:
    Exchange(Exchange const&) = delete;
    Exchange& operator=(Exchange const&) = delete;
    virtual ~Exchange() = default;

    virtual std::string name() const = 0;
    virtual int rank() const noexcept = 0;
    Partition const& partition() const noexcept { return partition_; }
    /// Whether finish leaves the sum of all gradients on every rank, not only that of its own
    /// shards; parameters are private then, and publish has nothing to do.
    virtual bool sums_everywhere() const noexcept = 0;

    /// This rank's gradients [partition().size()], which backward writes.
    virtual float* gradients() noexcept = 0;
    /// The parameters [partition().size()], perhaps one array for all ranks of the host: between
    /// begin and finish they are only read; after finish a rank writes its own shards only. What
    /// has not arrived yet is not to be read.
    virtual float* parameters() noexcept = 0;

    virtual std::vector<Carried> carried() { return {}; }

    /// Begins a step. `unit`: what a gradient of 1 means in it, samples in the step times the loss
    /// scale, for exchanges that carry something from step to step.
    ///
    /// Collective  over all ranks, as is `ready`: every rank calls them in the same order, but none
    ///             waits there for the others
    /// Throws      Error 76 when another rank has failed
    [[nodiscard]] GradientSum begin(double unit = 1) {
        is_summing_ = true;
        begin_sum(unit);
        return GradientSum(*this);
    }

    /// Begins to send every rank's shards of the parameters to all ranks: the last bucket first,
    /// since it is that of a model's first layers. Not while a sum is under way. Until all have
    /// arrived, a rank waits for others only by the functions below, or where the others need
    /// nothing from it meanwhile.
    ///
    /// Collective  over all ranks; does not wait for them where the exchange can do without
    /// Throws      Error 76 naming a rank that does not come
    void begin_publish() {
        expects(!is_summing_ && (is_whole() || lends()),
                "parameters are published between two sums of gradients, one time after the other");
        send_parameters();
    }
    /// Whether, on several hosts, parameters may arrive after begin_publish. Not collective.
    virtual bool can_publish_later() const noexcept { return false; }
    /// Whether all parameters are those that all ranks have published. Not collective.
    virtual bool is_whole() const noexcept { return true; }
    /// Buckets, counted from the last one, whose parameters are there by now; does what can be done
    /// for the others without waiting. Not collective.
    virtual int arrived() { return partition_.buckets(); }
    /// Waits for the parameters of bucket `index`, in any order.
    ///
    /// Not collective, but all other ranks must have published
    /// Throws  Error 76 naming a rank that does not come
    void wait_parameters(int index) {
        if (!is_whole()) {
            wait_arrived(partition_.buckets() - index);
        }
    }
    /// Waits for all parameters, and until this rank's own have left.
    ///
    /// Not collective, but all other ranks must have published, and must come to where they wait
    /// Throws  Error 76 naming a rank that does not come
    void wait_whole() {
        if (!is_whole()) {
            finish_publishing();
        }
    }
    /// Sends every rank's shards of the parameters to all ranks; not while a sum is under way.
    ///
    /// Collective  over all ranks
    /// Throws      Error 76 naming a rank that does not come
    void publish() {
        begin_publish();
        if (!lends()) {
            wait_whole();
        }
    }

    /// Whether parameters of other hosts' shards have memory only while they are lent, or while all
    /// are there: from wait_whole, which all ranks then call together, until the next step begins
    /// or parameters are published. Not collective.
    virtual bool lends() const noexcept { return false; }
    /// Lends the parameters of bucket `index`, until they are given back; all are given back before
    /// the sum is finished.
    ///
    /// Not collective, but all other ranks must have published, and must call `serve`, or come to
    /// where they wait
    /// Throws  Error 76 naming a rank that does not come
    virtual void lend(int /*index*/) {}
    /// Begins to fetch what will be lent next, where that need not wait. Not collective.
    virtual void ask_for(int /*index*/) {}
    virtual void give_back(int /*index*/) {}
    /// Does what can be done for others without waiting. Not collective.
    virtual void serve() {}
    /// Serves others until all ranks are here, none of which needs anything on loan any more; not
    /// while a sum is under way.
    ///
    /// Collective  over all ranks, where parameters are lent
    /// Throws      Error 76 naming a rank that does not come
    virtual void meet() {}

    /// Backward is about to write into bucket `index` of the gradients: gives it memory, where it
    /// has none. Not collective, but may wait until the ranks of the host have added up what this
    /// rank has given before.
    ///
    /// Throws  Error 69 where the host has no memory for it; 76 naming a rank that does not come
    virtual void prepare_gradients(int /*index*/) {}

    /// For a rank that an error of its own ends: it will not wait for the others when it is
    /// destroyed. Not collective.
    virtual void abandon() noexcept {}

    /// The cost of the step so far; complete after publish.
    ExchangeCost const& cost() const noexcept { return cost_; }
    /// The same, for who will not look again: what parameters cost that arrive later counts in the
    /// next step.
    virtual ExchangeCost take_cost() { return cost_; }

  protected:
    explicit Exchange(Partition partition) : partition_(std::move(partition)) {}
    bool is_summing() const noexcept { return is_summing_; }

    Partition partition_;
    ExchangeCost cost_;

  private:
    friend class GradientSum;
    virtual void begin_sum(double unit) = 0;
    virtual void bucket_ready(int index) = 0;
    virtual void finish_sum(std::span<double> step_sums, std::span<std::byte> payload) = 0;
    virtual std::span<double const> squares() const = 0;
    /// Begins to publish, or does all of it.
    virtual void send_parameters() = 0;
    /// Waits for `count` buckets, as `arrived` counts them; called while not all is there.
    virtual void wait_arrived(int /*count*/) {}
    virtual void finish_publishing() {}

    bool is_summing_ = false;
};

inline void GradientSum::ready(int index) {
    expects(exchange_ != nullptr && index == announced_, "buckets are ready in order, each once");
    ++announced_;
    exchange_->bucket_ready(index);
}

inline std::span<double const> GradientSum::finish(std::span<double> step_sums,
                                                   std::span<std::byte> payload) && {
    expects(exchange_ != nullptr && announced_ == exchange_->partition().buckets(),
            "a sum is finished once, after all buckets");
    auto& exchange = *std::exchange(exchange_, nullptr);
    exchange.finish_sum(step_sums, payload);
    exchange.is_summing_ = false;
    return exchange.squares();
}

} // namespace lockstep::comm
