#include "lockstep/base/text.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/monitor/collective_command.hpp"

#include <iostream>

#include "checkpoint_trial.hpp"
#include "command.hpp"
#include "measurement.hpp"

namespace lockstep::app {

namespace {

using comm::Communicator;

struct Options {
    std::uint64_t bytes = 0;
    std::int64_t repeats = 0;
    std::filesystem::path directory;
    std::string variant; ///< empty: all
    bool json = false;
};

Options parsed(std::vector<std::string> arguments) {
    Options options;
    options.json = take_flag(arguments, "--json");
    options.bytes =
        static_cast<std::uint64_t>(whole_number("--mb", take_option(arguments, "--mb", "1000"))) *
        1'000'000;
    options.repeats = whole_number("--repeats", take_option(arguments, "--repeats", "5"));
    options.variant = take_option(arguments, "--variant", "");
    options.directory = take_option(arguments, "--directory", ".");
    expect_arguments(arguments, 0, 0,
                     "lockstep bench checkpoint [--mb 1000] [--directory DIR] [--json]");
    return options;
}

void measure(Communicator const& world, Options const& options,
             std::filesystem::path const& directory) {
    CheckpointTrial bench(world, options.bytes, directory);
    // Alternating, so that a disk that changes its speed changes all of them.
    std::vector<std::pair<std::string, double (CheckpointTrial::*)()>> variants{
        {"raw-write", &CheckpointTrial::raw_write},
        {"synchronous", &CheckpointTrial::write},
        {"copy", &CheckpointTrial::copy},
        {"stall", &CheckpointTrial::stall},
        {"checksum", &CheckpointTrial::hash},
        {"raw-read", &CheckpointTrial::raw_read},
        {"load", &CheckpointTrial::load}};
    if (!bench.has_background()) {
        std::erase_if(variants,
                      [](auto const& each) { return each.second == &CheckpointTrial::stall; });
    }
    std::vector<std::vector<double>> seconds(variants.size());
    for (std::int64_t repeat = 0; repeat < options.repeats; ++repeat) {
        for (std::size_t i = 0; i < variants.size(); ++i) {
            seconds[i].push_back((bench.*variants[i].second)());
        }
    }
    for (std::size_t i = 0; world.is_root() && i < variants.size(); ++i) {
        if (!options.variant.empty() && options.variant != variants[i].first) {
            continue; // all are done: some need what others leave
        }
        auto const bytes = static_cast<double>(bench.bytes());
        print(std::cout,
              {"checkpoint",
               variants[i].first,
               bench.bytes(),
               world.size(),
               seconds[i],
               {{"bytes_per_s", bytes / median(seconds[i])}}},
              options.json);
        std::cout << std::flush;
    }
}

} // namespace

ExitCode bench_checkpoint_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            auto const& world = context.world;
            Options options;
            comm::agree(world, "reading the command line",
                        [&] { options = parsed(invocation.arguments); });
            in_trial_directory(world, options.directory,
                               [&](auto const& directory) { measure(world, options, directory); });
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
