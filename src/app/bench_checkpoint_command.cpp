#include "app/command.hpp"
#include "base/arguments.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "measure/checkpoint_trial.hpp"
#include "measure/measurement.hpp"
#include "measure/trial_directory.hpp"

#include <iostream>

#include "agreed_words.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

using comm::Communicator;

struct BenchCheckpointTold {
    std::int64_t megabytes = 1000;
    std::int64_t repeats = 5;
    std::filesystem::path directory = ".";
    std::string variant; ///< empty: all
    bool json = false;
};

using Trial = double (measure::CheckpointTrial::*)();

std::vector<std::pair<std::string, Trial>> trials() {
    return {{"raw-write", &measure::CheckpointTrial::raw_write},
            {"synchronous", &measure::CheckpointTrial::write},
            {"copy", &measure::CheckpointTrial::copy},
            {"stall", &measure::CheckpointTrial::stall},
            {"checksum", &measure::CheckpointTrial::hash},
            {"raw-read", &measure::CheckpointTrial::raw_read},
            {"load", &measure::CheckpointTrial::load}};
}

Options bench_checkpoint_options(BenchCheckpointTold& told) {
    std::vector<std::string> names;
    for (auto const& [name, trial] : trials()) {
        names.push_back(name);
    }
    return {
        .command = "lockstep bench checkpoint",
        .about = "Measures how fast a checkpoint is written and read. The state in the checkpoint "
                 "is distributed over all ranks.",
        .rows = {
            option::whole("--mb N", "size of the state in megabytes", told.megabytes),
            option::path("--directory DIR", "directory to write the checkpoint to", told.directory),
            option::one_of(
                "--variant", names,
                "synchronous: writing until the file is durable; stall: the time for which an "
                "asynchronous checkpoint stops training; checksum: the hashing that is part of "
                "writing; load: verifying and reading; raw-write, raw-read and copy: the same "
                "number of bytes is written with pwrite and fsync, read with pread, or copied in "
                "memory, as upper bounds on the speed; default: all variants",
                told.variant),
            option::whole("--repeats N", "repetitions", told.repeats),
            option::flag("--json", "print one line of JSON per result", told.json)}};
}

void measure(Communicator const& world, BenchCheckpointTold const& told,
             std::filesystem::path const& directory) {
    measure::CheckpointTrial bench(world, static_cast<std::uint64_t>(told.megabytes) * 1'000'000,
                                   directory);
    auto variants = trials();
    if (!bench.has_background()) {
        std::erase_if(variants, [](auto const& each) {
            return each.second == &measure::CheckpointTrial::stall;
        });
    }
    std::vector<std::vector<double>> seconds(variants.size());
    // Each is first as often as the others, and begins when the disk has written what others left.
    // The round before the first makes what some need of others.
    for (std::int64_t repeat = -1; repeat < told.repeats; ++repeat) {
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
        if (!told.variant.empty() && told.variant != variants[i].first) {
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
                       told.json);
        std::cout << std::flush;
    }
}

} // namespace

ExitCode bench_checkpoint_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            BenchCheckpointTold told;
            agreed_words(world, bench_checkpoint_options(told), invocation.arguments);
            measure::in_trial_directory(world, told.directory, [&](auto const& directory) {
                measure(world, told, directory);
            });
            return ExitCode::ok;
        });
}

std::string bench_checkpoint_help(HelpWords const&) {
    return help_of(bench_checkpoint_options);
}

} // namespace lockstep::app
