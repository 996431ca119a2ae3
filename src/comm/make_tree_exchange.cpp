#include "comm/make_tree_exchange.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/host_schedule.hpp"
#include "comm/hosts.hpp"
#include "comm/link_model.hpp"
#include "comm/shared_block.hpp"
#include "comm/wire.hpp"

#include <algorithm>
#include <utility>

#include "host_memory.hpp"
#include "partial.hpp"
#include "tree_exchange.hpp"

namespace lockstep::comm {

namespace {

/// For a bucket of the usual size: the first may be a small one.
Route route_of(TreeExchangeOptions const& options, std::vector<Partial> const& partials,
               Hosts const& hosts) {
    if (options.route) {
        return *options.route;
    }
    auto const& partition = options.partition;
    auto const elements = partition.bucket(std::min(1, partition.buckets() - 1)).count();
    double const bytes = options.rounding == Rounding::none ? 4 : 2;
    return faster_route(root_of(options.nodes), partials, hosts,
                        bytes * static_cast<double>(elements) / partition.ranks())
        .route;
}

HostMemory::Form form_of(TreeExchangeOptions const& options, int ranks) {
    return {.ranks = ranks,
            .size = options.partition.size(),
            .reduction_blocks = options.partition.reduction_blocks(),
            .step_sums = options.step_sums,
            .payload = options.payload,
            .private_parameters = options.sums_everywhere,
            .sparse_gradients = options.shards_gradients,
            // Ranks of a single host own all of them.
            .sparse_parameters = options.shards_parameters && ranks < options.partition.ranks(),
            .buckets = options.shards_parameters ? options.partition.buckets() : 0};
}

} // namespace

std::unique_ptr<Exchange> make_tree_exchange(Communicator const& world,
                                             TreeExchangeOptions const& options) {
    auto host = options.hosts.split(world);
    std::string name = host.size() > 1 ? "shared memory" : "memory of one rank";
    std::shared_ptr<SharedBlock const> block;
    auto const made = [&] {
        auto const form = form_of(options, host.size());
        return std::make_shared<SharedBlock>(host, form.bytes(), form.kept_bytes());
    };
    auto const refused = failure_of([&] { block = made(); });
    if (!all_ranks(world, !refused)) {
        // Slower, but it works: every rank is a host of its own.
        host = world.split(world.rank());
        name = concat("messages (",
                      refused ? refused->text().why : "shared memory failed on another host", ")");
        block = made();
    }
    auto hosts = hosts_from(leaders(world, host));
    auto const root = root_of(options.nodes);
    auto const partials = partials_of(root, options.nodes, hosts);
    auto chosen = options;
    if (hosts.count() > 1) {
        chosen.route = route_of(options, partials, hosts);
        auto const rounds = rounds_of(root, partials, Route::halving);
        name = concat("messages between ", hosts.count(), " hosts, ",
                      chosen.route == Route::direct ? std::string("directly")
                                                    : concat("in ", amount_of(rounds, "round")),
                      ", ", name);
    }
    auto const form = form_of(options, host.size());
    // Messages of two exchanges under way at once must not meet, nor those of loans theirs.
    auto wire = hosts.count() > 1 ? mpi_wire(world.duplicate()) : nullptr;
    auto loans =
        hosts.count() > 1 && options.shards_parameters ? mpi_wire(world.duplicate()) : nullptr;
    return std::make_unique<TreeExchange>(
        chosen, HostMemory(form, block), std::move(hosts), partials, world.rank(),
        TreeExchange::Wires{std::move(wire), std::move(loans)}, name);
}

std::vector<std::unique_ptr<Exchange>>
make_thread_exchanges(TreeExchangeOptions const& options, std::vector<int> const& leader_of_rank) {
    auto const ranks = static_cast<int>(options.nodes.size());
    auto const hosts =
        hosts_from(leader_of_rank.empty() ? std::vector<int>(static_cast<std::size_t>(ranks), 0)
                                          : leader_of_rank);
    std::vector<HostMemory> memories;
    for (auto const& group : hosts.ranks) {
        auto const form = form_of(options, static_cast<int>(group.size()));
        memories.emplace_back(form, std::make_shared<SharedBlock const>(form.bytes()));
    }
    auto const partials = partials_of(root_of(options.nodes), options.nodes, hosts);
    auto wires = thread_wires(ranks);
    auto loan_wires = thread_wires(ranks);
    std::vector<std::unique_ptr<Exchange>> all;
    for (int rank = 0; rank < ranks; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        all.push_back(std::make_unique<TreeExchange>(
            options, memories[static_cast<std::size_t>(hosts.host(rank))], hosts, partials, rank,
            TreeExchange::Wires{hosts.count() > 1 ? std::move(wires[at]) : nullptr,
                                hosts.count() > 1 && options.shards_parameters
                                    ? std::move(loan_wires[at])
                                    : nullptr},
            "threads"));
    }
    return all;
}

} // namespace lockstep::comm
