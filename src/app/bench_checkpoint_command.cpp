#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "measure/checkpoint_trial.hpp"
#include "measure/measurement.hpp"

#include <iostream>

namespace lockstep::app {

namespace {

using comm::Communicator;

struct BenchCheckpointOptions {
    std::uint64_t bytes = 0;
    std::int64_t repeats = 0;
    std::filesystem::path directory;
    std::string variant; ///< empty: all
    bool json = false;
};

BenchCheckpointOptions bench_checkpoint_options(std::vector<std::string> arguments) {
    BenchCheckpointOptions options;
    options.json = take_flag(arguments, "--json");
    options.bytes = static_cast<std::uint64_t>(
                        measure::whole_number("--mb", take_option(arguments, "--mb", "1000"))) *
                    1'000'000;
    options.repeats = measure::whole_number("--repeats", take_option(arguments, "--repeats", "5"));
    options.variant = take_option(arguments, "--variant", "");
    if (!options.variant.empty()) {
        require_one_of(
            "--variant", options.variant,
            {"raw-write", "synchronous", "copy", "stall", "checksum", "raw-read", "load"});
    }
    options.directory = take_option(arguments, "--directory", ".");
    expect_arguments(arguments, 0, 0,
                     "lockstep bench checkpoint [--mb 1000] [--directory DIR] [--json]");
    return options;
}

void measure(Communicator const& world, BenchCheckpointOptions const& options,
             std::filesystem::path const& directory) {
    measure::CheckpointTrial bench(world, options.bytes, directory);
    std::vector<std::pair<std::string, double (measure::CheckpointTrial::*)()>> variants{
        {"raw-write", &measure::CheckpointTrial::raw_write},
        {"synchronous", &measure::CheckpointTrial::write},
        {"copy", &measure::CheckpointTrial::copy},
        {"stall", &measure::CheckpointTrial::stall},
        {"checksum", &measure::CheckpointTrial::hash},
        {"raw-read", &measure::CheckpointTrial::raw_read},
        {"load", &measure::CheckpointTrial::load}};
    if (!bench.has_background()) {
        std::erase_if(variants, [](auto const& each) {
            return each.second == &measure::CheckpointTrial::stall;
        });
    }
    std::vector<std::vector<double>> seconds(variants.size());
    // Each is first as often as the others, and begins when the disk has written what others left.
    // The round before the first makes what some need of others.
    for (std::int64_t repeat = -1; repeat < options.repeats; ++repeat) {
        for (std::size_t turn = 0; turn < variants.size(); ++turn) {
            auto const i = (turn + static_cast<std::size_t>(repeat + 1)) % variants.size();
            bench.settle();
            auto const taken = (bench.*variants[i].second)();
            if (repeat >= 0) {
                seconds[i].push_back(taken);
            }
        }
    }
    for (std::size_t i = 0; world.is_root() && i < variants.size(); ++i) {
        if (!options.variant.empty() && options.variant != variants[i].first) {
            continue; // all are done: some need what others leave
        }
        auto const bytes = static_cast<double>(bench.bytes());
        measure::print(std::cout,
                       {"checkpoint",
                        variants[i].first,
                        bench.bytes(),
                        world.size(),
                        seconds[i],
                        {{"bytes_per_s", bytes / measure::median(seconds[i])}}},
                       options.json);
        std::cout << std::flush;
    }
}

} // namespace

ExitCode bench_checkpoint_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            BenchCheckpointOptions options;
            comm::agree(world, "reading the command line",
                        [&] { options = bench_checkpoint_options(invocation.arguments); });
            measure::in_trial_directory(world, options.directory, [&](auto const& directory) {
                measure(world, options, directory);
            });
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
