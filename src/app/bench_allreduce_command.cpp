#include "lockstep/base/text.hpp"
#include "lockstep/comm/agree.hpp"
#include "lockstep/monitor/collective_command.hpp"

#include <iostream>

#include "allreduce_trial.hpp"
#include "command.hpp"
#include "measurement.hpp"

namespace lockstep::app {

namespace {

struct Options {
    std::vector<std::size_t> bytes;
    std::vector<std::string> variants;
    std::int64_t repeats = 0;
    bool json = false;
};

Options parsed(std::vector<std::string> arguments) {
    Options options;
    options.json = take_flag(arguments, "--json");
    options.repeats = whole_number("--repeats", take_option(arguments, "--repeats", "50"));
    for (auto const& size : split(take_option(arguments, "--sizes", "1M,25M"), ',')) {
        options.bytes.push_back(static_cast<std::size_t>(whole_number("--sizes", size)));
    }
    auto const name = take_option(arguments, "--variant", "");
    options.variants = allreduce_variants();
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
            Options options;
            comm::agree(context.world, "reading the command line",
                        [&] { options = parsed(invocation.arguments); });
            for (auto const bytes : options.bytes) {
                for (auto const& variant : options.variants) {
                    auto const measured =
                        measure_allreduce(context.world, variant, bytes, options.repeats);
                    if (context.world.is_root()) {
                        print(std::cout, measured, options.json);
                        std::cout << std::flush;
                    }
                }
            }
            return ExitCode::ok;
        });
}

} // namespace lockstep::app
