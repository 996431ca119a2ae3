#include "app/command.hpp"
#include "base/escaped.hpp"
#include "base/text.hpp"
#include "lockstep/config/deck_source.hpp"
#include "measure/resume_trial.hpp"

#include <iostream>

#include "commands.hpp"
#include "no_launcher.hpp"

namespace lockstep::app {

namespace {

Options verify_resume_options(measure::ResumeTrialOptions& told) {
    using option::required;
    using option::whole;
    return {
        .command = "lockstep verify-resume",
        .positions = {"DECK...", 1, 1000},
        .about = "Proves exact resume on this set-up with two runs of the deck. The first run "
                 "trains N steps on A ranks. The second run also starts on A ranks; its last rank "
                 "is killed with SIGKILL at step K, and the run resumes on B ranks. Then every bit "
                 "of the two final states is compared. Exits with 0 if the states are identical, 1 "
                 "if they are different. Both runs write into a temporary directory next to the "
                 "deck's run directory. The temporary directory is removed at the end; the deck's "
                 "run directory is not touched.",
        .rows =
            {required(whole("--ranks A", "number of ranks that train", told.ranks)),
             required(whole("--resume-ranks B", "number of ranks that resume", told.resume_ranks)),
             required(whole("--kill-at K", "step at which the last rank is killed", told.kill_at)),
             required(whole("--steps N", "number of steps of the whole training", told.steps)),
             option::text("--launcher mpirun|srun",
                          "program that starts the ranks: mpirun, srun, or the path of one of them",
                          told.launcher)},
        .nearest_key = config::nearest_key};
}

} // namespace

ExitCode verify_resume_command(Invocation const& invocation) {
    if (invocation.arguments.empty()) {
        std::cout << verify_resume_help({});
        return ExitCode::usage;
    }
    require_no_launcher("verify-resume");
    measure::ResumeTrialOptions told;
    told.words = verify_resume_options(told).parse(invocation.arguments).all();
    if (told.kill_at > told.steps) {
        throw Error(ExitCode::usage,
                    {concat("--kill-at ", told.kill_at),
                     concat("the training has only ", amount_of(told.steps, "step")),
                     concat("Choose a step from 1 to ", told.steps)});
    }
    measure::ResumeTrial const trial(told);
    trial.run();
    auto const comparison = trial.compare();
    for (auto const& difference : comparison.state) {
        std::cout << escaped_line(concat(difference.where, ": ", difference.what)) << "\n";
    }
    for (auto const& line : trial.where_they_part()) {
        std::cout << line << "\n";
    }
    std::cout << (comparison.identical() ? "equal: every bit of the state\n" : "different\n");
    return comparison.identical() ? ExitCode::ok : ExitCode::different;
}

std::string verify_resume_help(HelpWords const&) {
    return help_of(verify_resume_options);
}

} // namespace lockstep::app
