#include "comm/tree_exchange.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/shared_block.hpp"
#include "comm/tree_sum.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "host_memory.hpp"
#include "host_messages.hpp"
#include "hosts.hpp"
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

class TreeExchange : public Exchange {
  public:
    TreeExchange(TreeExchangeOptions const& options, HostMemory memory, Hosts hosts, int rank,
                 std::optional<Communicator> world, std::string name);
    ~TreeExchange() override;

    std::string name() const override { return name_; }
    int rank() const noexcept override { return rank_; }
    bool sums_everywhere() const noexcept override { return options_.sums_everywhere; }
    float* gradients() noexcept override { return memory_.gradients(local_); }
    float* parameters() noexcept override { return memory_.parameters(local_); }

    void begin() override;
    void ready(int index) override;
    void finish(std::span<double> step_sums, std::span<std::byte> payload) override;
    std::span<double const> squares() const override {
        return one_host() ? std::span<double const>(memory_.squares(), reduction_blocks())
                          : std::span<double const>(all_squares_).last(reduction_blocks());
    }
    void publish() override;

  private:
    std::size_t reduction_blocks() const {
        return static_cast<std::size_t>(partition_.reduction_blocks());
    }
    bool one_host() const { return hosts_.count() == 1; }
    int delegate(int owner) const { return hosts_.delegate(host_, owner); }
    float* gradients_of(int rank) { return memory_.gradients(hosts_.local(rank)); }

    void progress();
    void sum_on_host(int bucket);
    void sum_partials(int bucket);
    void send_partials(int bucket, int owner);
    std::vector<float*> destinations(std::int64_t first);
    void share_step_sums(std::span<double> step_sums, std::span<std::byte> payload);
    void spread(float* array);
    void poll_until_summed(std::uint32_t computed);

    TreeExchangeOptions options_;
    HostMemory memory_;
    Hosts hosts_;
    int rank_;
    int host_;
    int local_;
    std::optional<Communicator> world_; ///< for its messages alone; none: one host
    std::string name_;

    std::vector<Partial> partials_;
    std::vector<TreeSum> host_sums_; ///< of each partial; those of other hosts are not used
    TreeSum final_sum_;              ///< over the partials
    Arrivals arrivals_;
    HostMessages messages_;

    std::uint32_t start_ = 0; ///< arrivals of this rank when the step began
    int announced_ = 0;       ///< buckets that this rank has given
    int summed_ = 0;          ///< buckets summed on this host
    int finished_ = 0;        ///< buckets whose own shards are summed over all hosts
    bool in_backward_ = false;
    bool odd_step_ = false;
    std::vector<std::vector<float const*>> sources_; ///< of each bucket's final sum
    std::vector<double> all_squares_; ///< behind the step_sums; with several hosts only
};

TreeExchange::TreeExchange(TreeExchangeOptions const& options, HostMemory memory, Hosts hosts,
                           int rank, std::optional<Communicator> world, std::string name)
    : Exchange(options.partition), options_(options), memory_(std::move(memory)),
      hosts_(std::move(hosts)), rank_(rank), host_(hosts_.host(rank)), local_(hosts_.local(rank)),
      world_(std::move(world)), name_(std::move(name)),
      partials_(partials_of(root_of(options.nodes), options.nodes, hosts_)),
      final_sum_(
          root_of(options.nodes),
          [this] {
              std::vector<TreeNode> leaves;
              for (auto const& partial : partials_) {
                  leaves.push_back(partial.node);
              }
              return leaves;
          }(),
          options.rounding),
      arrivals_(memory_.slots(), local_,
                static_cast<int>(hosts_.ranks[static_cast<std::size_t>(host_)].size()),
                std::chrono::duration<double>(options.timeout_seconds)),
      messages_({world_ ? &*world_ : nullptr, options_, hosts_, partials_, memory_.owner(), rank}) {
    for (auto const& partial : partials_) {
        host_sums_.push_back(sum_over_ranks(partial, options_.nodes, options_.rounding));
    }
    for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
        auto const shard = partition_.shard(bucket, rank_);
        auto& sources = sources_.emplace_back();
        for (std::size_t i = 0; i < partials_.size(); ++i) {
            auto const& partial = partials_[i];
            sources.push_back(partial.host == host_
                                  ? gradients_of(partial.ranks.front()) + shard.first
                                  : messages_.received(bucket, i));
        }
    }
    if (!one_host()) {
        all_squares_.resize(options_.step_sums + reduction_blocks());
    }
}

TreeExchange::~TreeExchange() = default;

void TreeExchange::begin() {
    cost_ = {};
    start_ = arrivals_.count();
    announced_ = summed_ = finished_ = 0;
    in_backward_ = true;
    odd_step_ = !odd_step_;
    if (!one_host()) {
        messages_.begin();
    }
}

void TreeExchange::ready(int index) {
    if (index != announced_) {
        throw Error(ExitCode::software,
                    {concat("bucket ", index, " of the gradients comes after ", announced_ - 1),
                     "buckets are sent in order, each once", "Please report this"});
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
        sum_on_host(summed_++);
    }
    while (finished_ < summed_ && messages_.arrived(finished_)) {
        sum_partials(finished_++);
    }
    if (in_backward_) {
        cost_.hidden_s += watch.seconds();
    }
}

std::vector<float*> TreeExchange::destinations(std::int64_t first) {
    std::vector<float*> all{gradients() + first};
    if (options_.sums_everywhere) {
        for (int other = 0; other < arrivals_.size(); ++other) {
            if (other != local_) {
                all.push_back(memory_.gradients(other) + first);
            }
        }
    }
    return all;
}

/// Nobody else touches these shards of the host's arrays: the sum of a partial goes where its first
/// rank's gradients lie.
void TreeExchange::sum_on_host(int bucket) {
    for (int owner = 0; owner < partition_.ranks(); ++owner) {
        if (delegate(owner) != rank_) {
            continue;
        }
        auto const shard = partition_.shard(bucket, owner);
        if (shard.count() == 0) {
            continue;
        }
        for (std::size_t i = 0; i < partials_.size(); ++i) {
            auto const& partial = partials_[i];
            if (partial.host != host_) {
                continue;
            }
            std::vector<float const*> sources;
            for (int const rank : partial.ranks) {
                sources.push_back(gradients_of(rank) + shard.first);
            }
            cost_.bytes += static_cast<std::int64_t>(sizeof(float)) * shard.count() *
                           static_cast<std::int64_t>(sources.size() - 1);
            if (one_host()) {
                host_sums_[i].add(sources, destinations(shard.first), shard.count(),
                                  memory_.squares() + shard.first / reduction_block);
            } else {
                float* const into = gradients_of(partial.ranks.front()) + shard.first;
                host_sums_[i].add(sources, std::span(&into, 1), shard.count());
            }
        }
        if (hosts_.host(owner) != host_) {
            send_partials(bucket, owner);
        }
    }
}

void TreeExchange::send_partials(int bucket, int owner) {
    auto const shard = partition_.shard(bucket, owner);
    for (auto const& partial : partials_) {
        if (partial.host == host_) {
            auto const* const values = gradients_of(partial.ranks.front()) + shard.first;
            cost_.bytes += messages_.send(owner, values, shard.count());
        }
    }
}

void TreeExchange::sum_partials(int bucket) {
    auto const shard = partition_.shard(bucket, rank_);
    if (!one_host() && shard.count() > 0) {
        messages_.unpack(bucket);
        final_sum_.add(sources_[static_cast<std::size_t>(bucket)], destinations(shard.first),
                       shard.count(), memory_.squares() + shard.first / reduction_block);
    }
}

void TreeExchange::finish(std::span<double> step_sums, std::span<std::byte> payload) {
    in_backward_ = false;
    Stopwatch const watch;
    std::copy(step_sums.begin(), step_sums.end(), memory_.step_sums(local_, odd_step_));
    if (rank_ == 0) {
        std::copy(payload.begin(), payload.end(), memory_.payload(odd_step_));
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
    messages_.wait_sent();
    if (options_.sums_everywhere && !one_host()) {
        spread(gradients());
    }
    arrivals_.arrive();
    arrivals_.wait_all(computed + 1);
    share_step_sums(step_sums, payload);
    cost_.exposed_s += std::max(0.0, watch.seconds() - cost_.imbalance_s);
}

/// Messages move only while MPI is called: no sleep on an arrival here.
void TreeExchange::poll_until_summed(std::uint32_t computed) {
    Backoff backoff(options_.timeout_seconds, "gradients of the other ranks");
    while (finished_ < partition_.buckets() || !arrivals_.all_reached(computed)) {
        int const before = summed_ + finished_;
        progress();
        if (summed_ + finished_ == before) {
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
    sum_with_deadline(*world_, all_squares_, options_.timeout_seconds);
    std::copy_n(all_squares_.begin(), step_sums.size(), step_sums.begin());
    broadcast_with_deadline(*world_, payload, options_.timeout_seconds);
}

/// Makes the shards of an array known to the other hosts; where each rank has an array of its own,
/// to all ranks of them.
void TreeExchange::spread(float* array) {
    cost_.bytes += messages_.spread(array);
    if (!options_.sums_everywhere) {
        return;
    }
    messages_.for_each_taken([&](int owner, int bucket) {
        auto const shard = partition_.shard(bucket, owner);
        for (int other = 0; other < arrivals_.size(); ++other) {
            if (other != local_) {
                std::copy(array + shard.first, array + shard.last,
                          memory_.gradients(other) + shard.first);
            }
        }
    });
}

void TreeExchange::publish() {
    if (options_.sums_everywhere) {
        return; // every rank has updated all of its own parameters
    }
    Stopwatch const watch;
    if (!one_host()) {
        spread(parameters());
    }
    arrivals_.arrive();
    arrivals_.wait_all(arrivals_.count());
    cost_.exposed_s += watch.seconds();
}

HostMemory::Form form_of(TreeExchangeOptions const& options, int ranks) {
    return {.ranks = ranks,
            .size = options.partition.size(),
            .reduction_blocks = options.partition.reduction_blocks(),
            .step_sums = options.step_sums,
            .payload = options.payload,
            .private_parameters = options.sums_everywhere};
}

} // namespace

std::unique_ptr<Exchange> make_tree_exchange(Communicator const& world,
                                             TreeExchangeOptions const& options) {
    auto host = options.hosts.split(world);
    std::string name = host.size() > 1 ? "shared memory" : "memory of one rank";
    std::shared_ptr<SharedBlock const> block;
    auto const refused = failure_of([&] {
        block = std::make_shared<SharedBlock>(host, form_of(options, host.size()).bytes());
    });
    if (!all_ranks(world, !refused)) {
        // Slower, but it works: every rank is a host of its own.
        host = world.split(world.rank());
        name =
            concat("messages (", refused ? refused->text().why : "another host cannot share", ")");
        block = std::make_shared<SharedBlock>(host, form_of(options, 1).bytes());
    }
    auto hosts = hosts_from(leaders(world, host));
    if (hosts.count() > 1) {
        name = concat("messages between ", hosts.count(), " hosts, ", name);
    }
    auto const form = form_of(options, host.size());
    // Messages of two exchanges under way at once must not meet.
    auto own = hosts.count() > 1 ? std::optional(world.duplicate()) : std::nullopt;
    return std::make_unique<TreeExchange>(options, HostMemory(form, block->data(), block),
                                          std::move(hosts), world.rank(), std::move(own), name);
}

std::vector<std::unique_ptr<Exchange>> make_thread_exchanges(TreeExchangeOptions const& options) {
    auto const ranks = static_cast<int>(options.nodes.size());
    auto const form = form_of(options, ranks);
    constexpr std::size_t alignment = 4096;
    auto const bytes = (form.bytes() + alignment - 1) / alignment * alignment;
    std::shared_ptr<void> const block(std::aligned_alloc(alignment, bytes), std::free);
    std::memset(block.get(), 0, bytes);
    std::vector<std::unique_ptr<Exchange>> all;
    all.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
        all.push_back(std::make_unique<TreeExchange>(
            options, HostMemory(form, static_cast<std::byte*>(block.get()), block),
            hosts_from(std::vector<int>(static_cast<std::size_t>(ranks), 0)), rank, std::nullopt,
            "threads"));
    }
    return all;
}

} // namespace lockstep::comm
