#include "app/command.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"
#include "measure/resume_trial.hpp"

#include <iostream>

namespace lockstep::app {

namespace {

Options verify_resume_options(measure::ResumeTrialOptions& told) {
    using option::required;
    using option::whole;
    return {.command = "lockstep verify-resume",
            .positions = {"DECK...", 1, 1000},
            .about = "Proves exact resume on this very set-up. Trains N steps on A ranks; trains "
                     "again, lets SIGKILL end the last rank at step K, and resumes on B ranks; "
                     "compares every bit of the two last states. Exit 0: equal, 1: different. The "
                     "runs' directories, beside the deck's own, are removed.",
            .rows = {required(whole("--ranks A", "that train", told.ranks)),
                     required(whole("--resume-ranks B", "that resume", told.resume_ranks)),
                     required(whole("--kill-at K", "the step of the kill", told.kill_at)),
                     required(whole("--steps N", "of the whole training", told.steps)),
                     option::text("--launcher mpirun|srun", "or a path to one", told.launcher)},
            .deck_keys = true};
}

/// Each rank would start ranks of its own, and mpirun refuses to start below another.
void require_no_launcher() {
    for (char const* const variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}) {
        if (environment(variable)) {
            throw Error(ExitCode::usage,
                        {"lockstep verify-resume was started by mpirun or srun",
                         "it starts its ranks by itself, as many as --ranks and --resume-ranks say",
                         "Start it alone: lockstep verify-resume DECK …"});
        }
    }
}

} // namespace

ExitCode verify_resume_command(Invocation const& invocation) {
    if (invocation.arguments.empty()) {
        std::cout << verify_resume_help({});
        return ExitCode::usage;
    }
    require_no_launcher();
    measure::ResumeTrialOptions told;
    told.words = verify_resume_options(told).parse(invocation.arguments).all();
    if (told.kill_at > told.steps) {
        throw Error(ExitCode::usage,
                    {concat("--kill-at ", told.kill_at), concat("there are ", told.steps, " steps"),
                     "Kill at one of them"});
    }
    measure::ResumeTrial const trial(told);
    trial.run();
    auto const comparison = trial.compare();
    for (auto const& difference : comparison.state) {
        std::cout << difference.where << ": " << difference.what << "\n";
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
