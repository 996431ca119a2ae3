#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "measure/allreduce_trial.hpp"
#include "measure/measurement.hpp"

#include <iostream>

namespace lockstep::app {

namespace {

struct BenchAllreduceOptions {
    std::vector<std::size_t> bytes;
    std::vector<std::string> variants;
    std::int64_t repeats = 0;
    bool json = false;
};

BenchAllreduceOptions bench_allreduce_options(std::vector<std::string> arguments) {
    BenchAllreduceOptions options;
    options.json = take_flag(arguments, "--json");
    options.repeats = measure::whole_number("--repeats", take_option(arguments, "--repeats", "50"));
    for (auto const& size : split(take_option(arguments, "--sizes", "1M,25M"), ',')) {
        options.bytes.push_back(static_cast<std::size_t>(measure::whole_number("--sizes", size)));
    }
    auto const name = take_option(arguments, "--variant", "");
    options.variants = measure::allreduce_variants();
    auto const all = joined(options.variants, ", ");
    if (!name.empty()) {
        std::erase_if(options.variants, [&](auto const& each) { return each != name; });
    }
    if (options.variants.empty()) {
        throw Error(ExitCode::usage, {concat("--variant ", name), "there is no such variant",
                                      concat("There are ", all)});
    }
    expect_arguments(arguments, 0, 0, "lockstep bench allreduce [--sizes 1M,25M] [--json]");
    return options;
}

} // namespace

ExitCode bench_allreduce_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            BenchAllreduceOptions options;
            comm::agree(context.world, "reading the command line",
                        [&] { options = bench_allreduce_options(invocation.arguments); });
            for (auto const bytes : options.bytes) {
                for (auto const& variant : options.variants) {
                    auto const measured =
                        measure::measure_allreduce(context.world, variant, bytes, options.repeats);
                    if (context.world.is_root()) {
                        measure::print(std::cout, measured, options.json);
                        std::cout << std::flush;
                    }
                }
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
