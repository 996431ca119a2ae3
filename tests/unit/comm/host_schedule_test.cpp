// Messages between hosts: few of them, and the sums of the replica tree, with threads for ranks.

#include "comm/host_schedule.hpp"
#include "comm/link_model.hpp"
#include "comm/make_tree_exchange.hpp"
#include "comm/tree_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <thread>
#include <tuple>

#include "catch.hpp"
#include "tree_values.hpp"

using namespace lockstep;
using namespace lockstep::comm;

namespace {

/// Ranks on hosts of these sizes, in rank order.
Hosts hosts_of_sizes(std::vector<int> const& sizes) {
    std::vector<int> leaders;
    for (int const size : sizes) {
        leaders.insert(leaders.end(), static_cast<std::size_t>(size),
                       static_cast<int>(leaders.size()));
    }
    return hosts_from(leaders);
}

std::vector<int> leaders_of(Hosts const& hosts) {
    std::vector<int> leaders;
    for (int const host : hosts.of_rank) {
        leaders.push_back(hosts.ranks[static_cast<std::size_t>(host)].front());
    }
    return leaders;
}

std::vector<int> equal(int hosts, int ranks) {
    return std::vector<int>(static_cast<std::size_t>(hosts), ranks);
}

std::vector<HostSchedule> schedules(Hosts const& hosts, int replicas, Route route) {
    auto const ranks = static_cast<int>(hosts.of_rank.size());
    auto const nodes = subtrees_of_ranks(replicas, ranks);
    auto const partials = partials_of(root_of(nodes), nodes, hosts);
    std::vector<HostSchedule> all;
    for (int rank = 0; rank < ranks; ++rank) {
        all.emplace_back(root_of(nodes), partials, hosts, rank, route);
    }
    return all;
}

/// Messages for a bucket on the way to the sums.
int sends_of(HostSchedule const& schedule) {
    int sum = 0;
    for (auto const& stage : schedule.stages()) {
        sum += static_cast<int>(stage.sends.size());
    }
    return sum;
}

using Sent = std::tuple<int, int, int>; // from, to, tag
std::map<Sent, std::vector<std::pair<int, int>>>
all_messages(std::vector<HostSchedule> const& schedules, bool sends) {
    std::map<Sent, std::vector<std::pair<int, int>>> all;
    for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
        for (auto const& stage : schedules[rank].stages()) {
            for (auto const& message : sends ? stage.sends : stage.receives) {
                auto const self = static_cast<int>(rank);
                auto& entries = all[sends ? Sent{self, message.partner, message.tag}
                                          : Sent{message.partner, self, message.tag}];
                REQUIRE(entries.empty());
                for (auto const& entry : message.entries) {
                    entries.emplace_back(entry.child, entry.owner);
                }
            }
        }
    }
    return all;
}

struct Shape {
    std::vector<int> hosts; ///< ranks of each
    int replicas;
    bool cyclic = false;       ///< ranks go round the hosts, which have as many each
    std::uint64_t shuffle = 0; ///< not 0: ranks lie on the hosts as this seed draws
};

Hosts layout_of(Shape const& shape) {
    if (shape.shuffle > 0) {
        std::vector<int> host_of_rank;
        for (std::size_t host = 0; host < shape.hosts.size(); ++host) {
            host_of_rank.insert(host_of_rank.end(), static_cast<std::size_t>(shape.hosts[host]),
                                static_cast<int>(host));
        }
        std::mt19937_64 random(shape.shuffle);
        std::shuffle(host_of_rank.begin(), host_of_rank.end(), random);
        return hosts_from(host_of_rank);
    }
    if (!shape.cyclic) {
        return hosts_of_sizes(shape.hosts);
    }
    auto const hosts = static_cast<int>(shape.hosts.size());
    std::vector<int> leaders;
    for (int rank = 0; rank < hosts * shape.hosts.front(); ++rank) {
        leaders.push_back(rank % hosts);
    }
    return hosts_from(leaders);
}

std::vector<Shape> shapes() {
    std::vector<Shape> all;
    for (int const hosts : {2, 3, 4, 5, 7, 8, 13}) {
        for (int const ranks : {1, 2, 3}) {
            for (int const extra : {0, 3}) {
                all.push_back({equal(hosts, ranks), hosts * ranks + extra});
            }
        }
    }
    all.push_back({equal(3, 2), 6, true});
    all.push_back({equal(4, 3), 13, true});
    all.push_back({equal(5, 2), 10, true});
    all.push_back({{1, 3, 2}, 6});
    all.push_back({{4, 1}, 7});
    all.push_back({{1, 1, 5, 2, 3}, 13});
    all.push_back({{2, 7, 1, 1, 1, 4}, 16});
    all.push_back({{8, 1, 1, 1, 1, 1, 1, 1, 1}, 16});
    return all;
}

/// Any number of hosts of any size, of which ranks and replicas know nothing.
Shape drawn_shape(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    auto const up_to = [&](int max) {
        return 1 + static_cast<int>(random() % static_cast<std::uint64_t>(max));
    };
    Shape shape{{}, 0, false, random() | 1};
    int ranks = 0;
    for (int host = 1 + up_to(9); host > 0; --host) {
        shape.hosts.push_back(up_to(up_to(6)));
        ranks += shape.hosts.back();
    }
    shape.replicas = ranks + static_cast<int>(random() % 20);
    return shape;
}

struct Job {
    Hosts hosts;
    TreeExchangeOptions options;
    std::vector<float> expected;
};

/// Counts the messages of a step, there and back, that are not empty.
std::int64_t messages_of(Job const& job, int rank) {
    auto const root = root_of(job.options.nodes);
    HostSchedule const schedule(root, partials_of(root, job.options.nodes, job.hosts), job.hosts,
                                rank, *job.options.route);
    std::int64_t sum = 0;
    for (auto const& stage : schedule.stages()) {
        for (auto const* const all : {&stage.sends, &stage.receives}) {
            for (auto const& message : *all) {
                std::int64_t full = 0; // buckets
                for (int bucket = 0; bucket < job.options.partition.buckets(); ++bucket) {
                    full +=
                        std::any_of(message.owners.begin(), message.owners.end(), [&](int owner) {
                            return job.options.partition.shard(bucket, owner).count() > 0;
                        });
                }
                sum += full; // each bucket by itself, there and back
            }
        }
    }
    return sum;
}

/// Two steps of one rank; whether all came out right.
bool play_steps(Job const& job, Exchange& exchange, int rank, std::vector<float> const& own) {
    auto const& partition = exchange.partition();
    bool right = true;
    for (int step = 0; step < 2; ++step) {
        auto sum = exchange.begin();
        for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
            auto const range = partition.bucket(bucket);
            std::copy(own.begin() + range.first, own.begin() + range.last,
                      exchange.gradients() + range.first);
            sum.ready(bucket);
        }
        std::vector<double> step_sums(1, rank == 1 ? 3.5 : 0);
        std::vector<std::byte> payload(1, std::byte(rank == 0 ? 7 : 0));
        auto const squares = std::move(sum).finish(step_sums, payload);
        right = right && step_sums[0] == 3.5 && payload[0] == std::byte(7);
        auto const same = [&](Range range) {
            return std::equal(job.expected.begin() + range.first, job.expected.begin() + range.last,
                              exchange.gradients() + range.first);
        };
        for (auto const& range : partition.owned(rank)) {
            right = right && same(range);
            for (auto at = range.first; at < range.last; ++at) {
                exchange.parameters()[at] = static_cast<float>(at + step);
            }
        }
        right = right && (!job.options.sums_everywhere || same({0, partition.size()}));
        for (std::int64_t g = 0; g < partition.reduction_blocks(); ++g) {
            right = right && squares[static_cast<std::size_t>(g)] ==
                                 block_squares(job.expected.data() + g * reduction_block);
        }
        exchange.publish();
        right = right && exchange.cost().messages == messages_of(job, rank);
        for (std::int64_t at = 0; !job.options.sums_everywhere && at < partition.size(); at += 97) {
            right = right && exchange.parameters()[at] == static_cast<float>(at + step);
        }
    }
    return right;
}

bool all_right(Job const& job) {
    auto const exchanges = make_thread_exchanges(job.options, leaders_of(job.hosts));
    std::vector<char> right(exchanges.size(), 0);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < exchanges.size(); ++rank) {
        threads.emplace_back([&, rank] {
            auto const own = test::tree_order(job.options.nodes[rank], job.options.partition.size(),
                                              0, job.options.rounding);
            right[rank] = play_steps(job, *exchanges[rank], static_cast<int>(rank), own) ? 1 : 0;
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    return std::all_of(right.begin(), right.end(), [](char each) { return each == 1; });
}

Job job_of(Shape const& shape, Route route, bool everywhere, Rounding rounding, int blocks = 0) {
    auto hosts = layout_of(shape);
    auto const ranks = static_cast<int>(hosts.of_rank.size());
    auto const elements = (blocks > 0 ? blocks : ranks <= 8 ? 29 : 13) * reduction_block;
    return {std::move(hosts),
            {.nodes = subtrees_of_ranks(shape.replicas, ranks),
             .partition = Partition(elements, ranks, 3 * reduction_block, 11 * reduction_block),
             .step_sums = 1,
             .payload = 1,
             .sums_everywhere = everywhere,
             .rounding = rounding,
             .timeout_seconds = 60,
             .route = route},
            test::tree_order({0, shape.replicas}, elements, 0, rounding)};
}

} // namespace

TEST_CASE("what one rank sends, another awaits") {
    for (auto const& shape : shapes()) {
        for (auto const route : {Route::direct, Route::halving}) {
            CAPTURE(shape.hosts, shape.replicas, static_cast<int>(route));
            auto const all = schedules(layout_of(shape), shape.replicas, route);
            CHECK(all_messages(all, true) == all_messages(all, false));
        }
    }
}

TEST_CASE("as many messages as the logarithm of the hosts, and no more bytes than directly") {
    for (int const hosts : {2, 3, 4, 5, 6, 7, 8, 16, 31, 64, 100, 128, 256, 512}) {
        CAPTURE(hosts);
        auto const layout = filled_hosts(hosts, 1);
        int const levels = static_cast<int>(std::bit_width(static_cast<unsigned>(hosts - 1)));
        auto const nodes = subtrees_of_ranks(hosts, hosts);
        CHECK(rounds_of({0, hosts}, partials_of({0, hosts}, nodes, layout), Route::halving) ==
              levels);
        for (auto const& schedule : schedules(layout, hosts, Route::halving)) {
            CHECK(sends_of(schedule) <= 2 * levels);
            int shards = 0;
            for (auto const& stage : schedule.stages()) {
                for (auto const& message : stage.sends) {
                    shards += static_cast<int>(message.entries.size());
                }
            }
            CHECK(shards == hosts - 1); // each but its own, once
            bool const is_power = (hosts & (hosts - 1)) == 0;
            for (auto const& stage : schedule.stages()) {
                bool const halves = stage.sends.size() == 1 && stage.sends.front().entries.size() ==
                                                                   std::size_t{1} << stage.depth;
                CHECK((!is_power || halves));
            }
        }
        CHECK(sends_of(schedules(layout, hosts, Route::direct).front()) == hosts - 1);
    }
    for (auto const& schedule : schedules(filled_hosts(64 * 8, 8), 512, Route::halving)) {
        CHECK(sends_of(schedule) == 6);
    }
}

TEST_CASE("the sums are those of one rank on any hosts, whatever the route") {
    auto const all = shapes();
    REQUIRE(all.size() >= 40);
    for (std::size_t i = 0; i < all.size(); ++i) {
        CAPTURE(all[i].hosts, all[i].replicas);
        for (auto const route : {Route::direct, Route::halving}) {
            CHECK(all_right(job_of(all[i], route, i % 3 == 0, Rounding::none)));
        }
        if (i % 4 == 1) {
            CHECK(all_right(job_of(all[i], Route::halving, i % 8 == 1, Rounding::bf16)));
        }
    }
}

TEST_CASE("the sums are those of one rank wherever ranks lie") {
    constexpr std::uint64_t draws = 12;
    for (std::uint64_t seed = 1; seed <= draws; ++seed) {
        auto const shape = drawn_shape(seed);
        auto const route = seed % 4 == 0 ? Route::direct : Route::halving;
        CAPTURE(seed, shape.hosts, shape.replicas);
        auto const all = schedules(layout_of(shape), shape.replicas, route);
        REQUIRE(all_messages(all, true) == all_messages(all, false));
        CHECK(all_right(
            job_of(shape, route, seed % 3 == 0, seed % 5 == 0 ? Rounding::bf16 : Rounding::none)));
    }
}

TEST_CASE("512 ranks on 64 hosts have the sums of one") {
    auto job = job_of({equal(64, 8), 512}, Route::halving, false, Rounding::none, 13);
    job.options.partition =
        Partition(13 * reduction_block, 512, (1 << 20) / 4, 11 * reduction_block);
    CHECK(all_right(job));
    // Those that the trace of such a job has for the first ranks of the hosts
    // (tests/run/schedule_trace_test.py).
    std::int64_t max = 0;
    for (int rank = 0; rank < 512; rank += 8) {
        max = std::max(max, messages_of(job, rank));
    }
    CHECK(max == 6);
}

TEST_CASE("few hosts or large shards go directly, many hosts in rounds") {
    auto const route = [](int hosts, double shard_bytes) {
        auto const layout = filled_hosts(hosts, 1);
        auto const nodes = subtrees_of_ranks(hosts, hosts);
        auto const root = root_of(nodes);
        return faster_route(root, partials_of(root, nodes, layout), layout, shard_bytes).route;
    };
    CHECK(route(2, 1e5) == Route::direct);
    CHECK(route(3, 1e3) == Route::direct);
    CHECK(route(8, 3e6) == Route::direct);
    CHECK(route(64, 3e6) == Route::direct); // putting shards together costs more than messages
    CHECK(route(1024, 16384) == Route::halving);
    CHECK(route(4096, 1e4) == Route::halving);
}
