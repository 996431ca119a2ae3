#include "app/command.hpp"
#include "base/arguments.hpp"
#include "lockstep/monitor/collective_command.hpp"
#include "measure/allreduce_trial.hpp"
#include "measure/measurement.hpp"

#include <iostream>

#include "agreed_words.hpp"
#include "commands.hpp"

namespace lockstep::app {

namespace {

struct AllreduceTold {
    std::vector<std::int64_t> bytes{1 << 20, 25 << 20};
    std::string variant; ///< empty: all
    std::int64_t repeats = 50;
    bool json = false;
};

Options bench_allreduce_options(AllreduceTold& told) {
    return {.command = "lockstep bench allreduce",
            .about = "Measures an all-reduce: the sum of an array of floats over all ranks, with "
                     "the result on every rank. Each repetition starts after a barrier. The time "
                     "of a repetition is that of the slowest rank.",
            .rows = {
                option::wholes("--sizes LIST",
                               "sizes of the array in bytes; M is 2^20 bytes (1M,25M)", told.bytes),
                option::one_of(
                    "--variant", measure::allreduce_variants(),
                    "ordered: a sum in tree order, as in training; mpi: MPI_Allreduce; copy: an "
                    "upper bound on the speed: all ranks copy the same number of bytes at once "
                    "from a neighbour's shared memory, without a sum; default: all variants",
                    told.variant),
                option::whole("--repeats N", "repetitions", told.repeats),
                option::flag("--json", "print one line of JSON per result", told.json)}};
}

} // namespace

ExitCode bench_allreduce_command(Invocation const& invocation) {
    return monitor::run_collectively(
        invocation.argc, invocation.argv, [&](monitor::CommandContext& context) {
            AllreduceTold told;
            agreed_words(context.world, bench_allreduce_options(told), invocation.arguments);
            auto const variants =
                told.variant.empty() ? measure::allreduce_variants() : std::vector{told.variant};
            for (auto const bytes : told.bytes) {
                for (auto const& variant : variants) {
                    auto const measured = measure::measure_allreduce(
                        context.world, variant, static_cast<std::size_t>(bytes), told.repeats);
                    if (context.world.is_root()) {
                        measure::print(std::cout, measured, told.json);
                        std::cout << std::flush;
                    }
                }
            }
            return ExitCode::ok;
        });
}

std::string bench_allreduce_help(HelpWords const&) {
    return help_of(bench_allreduce_options);
}

} // namespace lockstep::app
