#include "measure/train_side/check_probes.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "device/device.hpp"
#include "lockstep/base/error.hpp"
#include "measure/allreduce_trial.hpp"
#include "measure/checkpoint_trial.hpp"
#include "measure/trial_directory.hpp"

#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <unistd.h>

namespace lockstep::measure {

namespace {

constexpr std::uint64_t small = sizeof(float);
constexpr std::uint64_t large = std::uint64_t{8} << 20;
constexpr std::uint64_t trial_bytes = std::uint64_t{24} << 20;

double seconds_since_1970() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string rate_text(double bytes_per_s) {
    return concat(bytes_text(static_cast<std::uint64_t>(bytes_per_s)), "/s");
}

/// "0.012 ms a message, 4.1 GiB/s", measured by sums over `comm`.
///
/// Collective  over `comm`
std::string sums_text(comm::Communicator const& comm) {
    auto const latency = median(measure_allreduce(comm, "ordered", small, 20).seconds);
    auto const whole = median(measure_allreduce(comm, "ordered", large, 5).seconds);
    return concat("a sum of 4 bytes takes ", fixed(latency * 1e3, 3), " ms, one of 8 MiB ",
                  fixed(whole * 1e3, 1), " ms: ", rate_text(static_cast<double>(large) / whole));
}

Finding finding_of(std::string topic, Error const& error) {
    auto const& text = error.text();
    return {Colour::red, std::move(topic), concat(text.what, ": ", text.why), text.next};
}

/// Rank 0 leaves a file, and all look for it.
///
/// Collective  over `world`
/// Returns     the ranks that do not see it, on rank 0 at least
std::vector<int> blind_ranks(comm::Communicator const& world,
                             std::filesystem::path const& directory) {
    std::string probe;
    comm::agree(world, "writing a file for the other ranks", [&] {
        if (world.is_root()) {
            probe = (directory / concat(".lockstep-probe-", ::getpid())).string();
            write_text_durably(probe, "");
        }
    });
    comm::broadcast_text(world, probe);
    std::error_code hidden; // a directory that cannot be looked into shows nothing, either
    auto const sees = comm::all_gather(world, std::filesystem::exists(probe, hidden) ? 1 : 0);
    if (world.is_root()) {
        std::error_code ignored;
        std::filesystem::remove(probe, ignored);
    }
    std::vector<int> blind;
    for (std::size_t rank = 0; rank < sees.size(); ++rank) {
        if (sees[rank] == 0) {
            blind.push_back(static_cast<int>(rank));
        }
    }
    return blind;
}

/// Operations a second of a product of two matrices, and bytes per second of a copy to the device.
struct Speed {
    double product = 0;
    double copy = 0;
};

Speed measured_speed(torch::Device device) {
    torch::NoGradGuard const no_grad;
    std::int64_t const side = device.is_cpu() ? 512 : 4096;
    auto const options = torch::TensorOptions(torch::kFloat32).device(device);
    auto const a = torch::rand({side, side}, options);
    auto const on_host = torch::rand({side, side});
    auto const wait = [&] { train::synchronize(device); };
    double product_s = std::numeric_limits<double>::max();
    double copy_s = product_s;
    for (int pass = 0; pass < 6; ++pass) {
        wait();
        Stopwatch watch;
        auto const c = torch::mm(a, a);
        wait();
        product_s = std::min(product_s, watch.restart());
        auto const copied = device.is_cpu() ? on_host.clone() : on_host.to(device);
        wait();
        copy_s = std::min(copy_s, watch.seconds());
    }
    auto const sides = static_cast<double>(side);
    return {2 * sides * sides * sides / product_s, sides * sides * sizeof(float) / copy_s};
}

} // namespace

void check_clocks(CheckContext const& context) {
    if (context.topology.hosts.size() == 1) {
        return;
    }
    auto smallest = std::numeric_limits<double>::max();
    for (int round = 0; round < 10; ++round) { // the best round had the least waiting in it
        comm::barrier(context.world);
        auto const times = comm::all_gather(context.world, seconds_since_1970());
        auto const [first, last] = std::minmax_element(times.begin(), times.end());
        smallest = std::min(smallest, *last - *first);
    }
    auto const text =
        concat("the hosts' clocks differ by at most ", fixed(smallest * 1e3, 1), " ms");
    constexpr double max = 1;
    context.report.add({smallest > max ? Colour::yellow : Colour::green, "clocks", text,
                        smallest > max ? "Synchronize the hosts' clocks with a time server" : ""});
}

void check_network(CheckContext const& context) {
    auto const& world = context.world;
    auto const& topology = context.topology;
    auto& report = context.report;
    if (world.size() == 1) {
        report.green("network", "one rank: nothing to exchange");
        return;
    }
    auto const host = world.split_by_host();
    auto const alone = comm::all_ranks(world, host.size() == 1);
    if (!alone) {
        // Hosts measure at the same time, each in its own memory; rank 0's is told.
        auto const text = host.size() > 1 ? sums_text(host) : std::string("one rank here");
        report.green("within host", concat(topology.hosts.front(), ": ", text));
    }
    comm::barrier(world); // measured one after the other
    auto const firsts = first_of_hosts(context);
    if (topology.hosts.size() > 1 && topology.local_rank == 0) {
        report.green("between hosts",
                     concat(topology.hosts.size(), " hosts, one rank each: ", sums_text(firsts)));
    }
    comm::barrier(world);
}

double check_disk(CheckContext const& context, std::filesystem::path const& directory) {
    auto const& world = context.world;
    auto& report = context.report;
    FileSystem files;
    std::vector<int> blind;
    double rate = 0;
    try {
        comm::agree(world, "looking at the run's directory",
                    [&] { files = file_system_of(directory); });
        report.green("disk", concat(directory.string(), " is on ", files.type, ", ",
                                    bytes_text(files.free), " free"));
        if (!files.lock.empty()) {
            report.add({Colour::yellow, "disk",
                        concat("files in ", directory.string(), " cannot be locked: ", files.lock),
                        "Make sure that no two jobs use one run directory, or mount the file "
                        "system with file locking"});
        }
        auto const parent = nearest_directory(directory); // a run that never was leaves none
        blind = blind_ranks(world, parent);
        if (!blind.empty()) {
            report.add({Colour::red, "disk",
                        concat("rank ", blind.front(), " does not see what rank 0 writes into ",
                               parent.string()),
                        "Point run.directory at a file system that all hosts share"});
            return 0;
        }
        in_trial_directory(world, parent, [&](auto const& place) {
            CheckpointTrial trial(world, trial_bytes, place);
            auto const write_s = trial.write();
            auto const load_s = trial.load();
            rate = static_cast<double>(trial.bytes()) / write_s;
            report.green("checkpoint",
                         concat("24 MiB by all ranks: written in ", fixed(write_s * 1e3, 0),
                                " ms, ", rate_text(rate), "; verified and read in ",
                                fixed(load_s * 1e3, 0), " ms"));
        });
    } catch (AgreedError const& error) {
        report.add(finding_of("disk", error));
    }
    return rate;
}

void check_speed(CheckContext const& context, config::Run const& run) {
    torch::set_num_threads(static_cast<int>(run.threads));
    auto const& world = context.world;
    auto const& topology = context.topology;
    auto& report = context.report;
    Speed own;
    try {
        comm::agree(world, "multiplying matrices",
                    [&] { own = measured_speed(torch::Device(context.world.device())); });
    } catch (AgreedError const& error) {
        report.add(finding_of("speed", error));
        return;
    }
    auto const products = comm::all_gather(world, own.product);
    auto const [slowest, fastest] = std::minmax_element(products.begin(), products.end());
    auto const copy = comm::all_reduce(world, own.copy, comm::Reduce::minimum);
    auto const range = concat(fixed(*slowest / 1e9, 0), " to ", fixed(*fastest / 1e9, 0));
    report.green("speed", concat(world.size() == 1 ? fixed(*slowest / 1e9, 0) : range,
                                 " GFLOP/s per rank in float32; copies at ", rate_text(copy)));
    if (*slowest < 0.7 * *fastest) {
        auto const rank = slowest - products.begin();
        report.add(
            {Colour::yellow, "speed",
             concat("rank ", rank, " on ", topology.host_of_rank[static_cast<std::size_t>(rank)],
                    " has ", fixed(100 * *slowest / *fastest, 0), " % of the fastest rank's speed"),
             "Check what else runs on that host, or set run.placement = speed to give faster ranks "
             "more replicas"});
    }
}

} // namespace lockstep::measure
