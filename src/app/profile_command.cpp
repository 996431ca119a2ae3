#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/awake_clock.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/monitor/run_records.hpp"
#include "trace/request.hpp"

#include <chrono>
#include <iostream>
#include <thread>

#include "commands.hpp"

namespace lockstep::app {

namespace {

struct ProfileTold {
    std::int64_t steps = 10;
    double wait_s = 300;
};

Options profile_options(ProfileTold& told) {
    return {
        .command = "lockstep profile",
        .positions = {"RUN", 1, 1},
        .about = "Asks a running job for a timeline of its next steps on all ranks, and waits for "
                 "the timeline. RUN is the run's directory, on this host or on a shared file "
                 "system. The timeline can be opened in ui.perfetto.dev or chrome://tracing.",
        .rows = {option::whole("--steps N", "number of steps, at most 1000", told.steps,
                               {.min = 1, .max = 1000}),
                 option::real("--wait SECONDS", "how long to wait for the timeline; 0: do not wait",
                              told.wait_s, {.min = 0, .max = 1e6})}};
}

/// Throws  Error 66 for a run that does not run
void require_running(monitor::RunRecords const& run) {
    if (run.attempts.empty() || !run.attempts.back().reason.empty()) {
        throw Error(ExitCode::no_input,
                    {concat("cannot record a timeline for ", run.name()),
                     concat("according to its records, the run has ",
                            run.attempts.empty() ? "not started" : "ended"),
                     "Start the run and repeat this command, or choose the steps in advance with "
                     "profile.steps in the run's deck"});
    }
}

/// Throws  Error 66 where the run ends without, 69 where it does not answer in time
monitor::ProfileRecord awaited(monitor::RunRecords& run, std::size_t before, double wait_s) {
    for (AwakeClock clock; clock.seconds() < wait_s;) {
        run.read();
        if (run.profiles.size() > before) {
            return run.profiles.back();
        }
        require_running(run);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    throw Error(ExitCode::unavailable,
                {concat(run.name(), " has written no timeline within ", duration_text(wait_s)),
                 "the job completes no steps, has ended, or could not write the timeline (see "
                 "log.txt in the run's directory)",
                 "See what the run does with lockstep watch. The request stays pending until the "
                 "run's next step"});
}

} // namespace

ExitCode profile_command(Invocation const& invocation) {
    ProfileTold told;
    auto const words = profile_options(told).parse(invocation.arguments);
    monitor::RunRecords run(words.positions[0]);
    run.read();
    run.require_of_a_run(words.positions[0]);
    require_running(run);
    auto const directory = run.path().parent_path();
    auto const before = run.profiles.size();
    trace::ask_for_steps(directory.empty() ? "." : directory, told.steps);
    if (told.wait_s > 0) {
        auto const profile = awaited(run, before, told.wait_s);
        std::cout << "timeline of steps " << profile.first_step << " to " << profile.step << ": "
                  << (directory / profile.file).string() << "\n";
    } else {
        std::cout << "asked for a timeline of " << amount_of(told.steps, "step") << "\n";
    }
    return ExitCode::ok;
}

std::string profile_help(HelpWords const&) {
    return help_of(profile_options);
}

} // namespace lockstep::app
