#include "launch/launch.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "launch/fit.hpp"
#include "lockstep/base/error.hpp"

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <unistd.h>

#include "dialog.hpp"
#include "job_script.hpp"
#include "supervisor.hpp"

namespace lockstep::launch {

namespace {

bool on_terminal() {
    return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
}

/// In mode dp there is one process, and a search needs a rank for each replica of a trial.
void require_mode_of_search(LaunchChoice const& choice) {
    if (choice.search.empty() || mode_of(choice, deck_of(choice)) != "dp") {
        return;
    }
    bool const deck_says = choice.mode.empty();
    throw Error(
        ExitCode::usage,
        {concat("--search cannot be combined with ", deck_says ? "run.mode = dp" : "--mode dp"),
         "the replicas of a trial run on ranks, not on threads",
         deck_says ? "Set run.mode = auto, or give --mode ddp" : "Leave --mode dp out"});
}

/// Writes the job script and becomes the command that submits it.
ExitCode submit(LaunchChoice const& choice, Consent consent) {
    auto const path = job_script_path(choice);
    auto const script = job_script(choice);
    std::string const command = choice.submit == "slurm" ? "sbatch" : "qsub";
    if (consent == Consent::ask) {
        confirm(concat(path, ":\n\n", script), concat("Write it and submit it with ", command));
    }
    make_directories(std::filesystem::absolute(path).parent_path());
    if (std::filesystem::exists(path) && read_text(path) != script) { // somebody may have edited it
        auto const kept = concat(path, ".archived-", utc_for_names());
        rename_durably(path, kept);
        std::cout << "moved the earlier job script to " << kept << "\n";
    }
    write_text_durably(path, script);
    auto const directory = directory_of(choice, deck_of(choice)).string();
    std::cout << command << " " << path << "\n"
              << (choice.search.empty()
                      ? concat("lockstep watch ", directory, " waits for the run and shows it")
                      : concat("lockstep search report ", directory,
                               " shows the trials, also while the search runs"))
              << std::endl;
    ::execlp(command.c_str(), command.c_str(), path.c_str(), nullptr);
    throw Error(ExitCode::unavailable, {concat("cannot start ", command), system_text(errno),
                                        concat("Submit ", path, " on a host that has ", command)});
}

} // namespace

ExitCode launch(LaunchChoice choice, Consent consent) {
    bool const asks = consent == Consent::ask;
    bool const shows = consent == Consent::to_show;
    if (asks && !on_terminal()) {
        throw Error(ExitCode::usage, {"lockstep launch cannot ask its questions",
                                      "standard input or output is not a terminal",
                                      "To start without questions, give --yes"});
    }
    auto const scheduler =
        choice.submit == "no" || (!asks && choice.submit.empty()) ? Scheduler() : find_scheduler();
    if (asks) {
        ask_for_the_rest(choice, scheduler);
    }
    require_mode_of_search(choice);
    if (choice.submit == "slurm" || choice.submit == "pbs") {
        settle_job(choice, scheduler);
        if (shows) {
            std::cout << job_script(choice);
            return ExitCode::ok;
        }
        return submit(choice, consent);
    }
    if (choice.nodes > 0 || !choice.time.empty()) {
        throw Error(ExitCode::usage,
                    {"job options such as --nodes or --time were given, but no job is submitted",
                     "these options apply only to a job that is submitted",
                     "Add --submit slurm or --submit pbs, or name hosts with --hostfile"});
    }
    auto const plan = plan_of(choice);
    auto const line = shell_line(launch_words(plan, plan.hosts));
    if (shows) {
        std::cout << line << "\n";
        return ExitCode::ok;
    }
    if (asks) {
        confirm(line, "Start it");
    }
    return supervise(plan);
}

} // namespace lockstep::launch
