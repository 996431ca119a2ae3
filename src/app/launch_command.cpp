#include "app/command.hpp"
#include "base/start_limit.hpp"
#include "base/text.hpp"
#include "launch/fit.hpp"
#include "launch/launch.hpp"
#include "lockstep/config/deck_source.hpp"

#include <algorithm>
#include <tuple>

#include "commands.hpp"
#include "no_launcher.hpp"

namespace lockstep::app {

namespace {

struct LaunchTold {
    launch::LaunchChoice choice;
    bool yes = false;
    bool show = false;
    bool force = false;
};

Options launch_options(LaunchTold& told) {
    auto& choice = told.choice;
    auto const time = [&choice](std::string const& text) {
        auto const known = launch::job_time(text);
        if (!known) {
            throw RefusedValue{"expected hours:minutes:seconds",
                               "Write --time 12:00:00, or --time 2-00:00:00 for two days"};
        }
        choice.time = *known;
    };
    return {
        .command = "lockstep launch",
        .positions = {"[DECK]...", 0, 1000},
        .about = "Trains a deck with one rank per device (GPU or core) of this host or, inside a "
                 "Slurm or PBS job, of all hosts of the job. The command supervises the ranks: it "
                 "passes the signals TERM, INT and USR1 on to the ranks, which then write a "
                 "checkpoint and end. After the loss of a rank, it restarts all ranks on the hosts "
                 "that still answer. A host whose test shows that it is bad is left out for the "
                 "rest of the job. On a terminal, the command lists the devices and the "
                 "scheduler, asks for the settings that the options below leave open, and shows "
                 "the command line or the job script before it starts the run or submits the job.",
        .rows =
            {option::flag("--yes", "ask no questions; without --devices: one rank per device",
                          told.yes),
             option::flag("--show", "only print the command line or the job script", told.show),
             option::text("--search SPACE.ini",
                          "search for the best values of the keys in this file (see lockstep "
                          "search), instead of training once",
                          choice.search),
             option::text("--search-directory DIRECTORY",
                          "directory of the search; default: runs/SPACE for SPACE.ini",
                          choice.search_directory),
             option::one_of("--mode", {"single", "dp", "ddp"},
                            "single: one process; dp: one process that trains replicas on threads; "
                            "ddp: one rank per device",
                            choice.mode),
             option::whole("--devices N",
                           "number of ranks per host; in mode dp: number of replicas",
                           choice.devices),
             option::flag("--oversubscribe", "allow more ranks than there are devices",
                          choice.oversubscribe),
             option::one_of("--scale-rate", {"none", "linear", "sqrt"},
                            "set optimizer.scale-learning-rate to this value", choice.scale_rate),
             option::flag("--force", "resume even if the deck has changed", told.force),
             option::whole(
                 "--restarts N",
                 "give up after N consecutive restarts without a newer checkpoint; default: the "
                 "key fault-tolerance.restarts; for a submitted job: 2 on several nodes, else 0",
                 choice.restarts, {.min = 0}),
             option::whole("--min-hosts N",
                           "restart the run only if at least N hosts answer, so that it does not "
                           "continue alone on a host that is cut off; default: 1",
                           choice.min_hosts, {.min = 1}),
             option::whole("--spares N",
                           "keep the last N hosts as spares: after a loss they take the place of "
                           "hosts that are left out; default: 0",
                           choice.spares, {.min = 0}),
             option::one_of("--launcher", {"mpirun", "srun"},
                            "program that starts the ranks (mpirun); srun works only inside a "
                            "Slurm job or with --submit slurm",
                            choice.launcher),
             option::text("--hostfile FILE", "file with one host per line: NAME [slots=N]",
                          choice.hostfile),
             option::one_of("--submit", {"no", "slurm", "pbs"},
                            "slurm: write and submit the job script runs/NAME.sbatch; pbs: write "
                            "and submit runs/NAME.pbs; no: start the run here",
                            choice.submit),
             option::whole("--nodes N", "nodes of the submitted job", choice.nodes),
             option::whole(
                 "--gpus-per-node N",
                 "GPUs per node of the submitted job; default: all GPUs of a node in the partition",
                 choice.gpus, {.min = 0}),
             option::text("--partition NAME",
                          "Slurm partition or PBS queue; default: the default of the scheduler",
                          choice.partition),
             option::text("--account NAME", "account to charge for the job", choice.account),
             option::own("--time H:M:S",
                         "time limit of the job; default: 12:00:00, or the partition's limit if "
                         "that is shorter",
                         time)},
        .nearest_key = config::nearest_key};
}

void require_job_for_its_shape(launch::LaunchChoice const& choice) {
    bool const shaped = choice.nodes > 0 || choice.gpus >= 0 || !choice.time.empty() ||
                        !choice.partition.empty() || !choice.account.empty();
    if (choice.submit == "no" && shaped) {
        throw Error(
            ExitCode::usage,
            {"job options such as --nodes or --time were given with --submit no",
             "these options apply only to a job that is submitted",
             "Name hosts with --hostfile instead, or submit a job with --submit slurm or pbs"});
    }
}

/// Trials of a search are never forced. Its mode is looked at when the deck is known.
void require_fit_for_search(LaunchTold const& told) {
    auto const& choice = told.choice;
    if (choice.search.empty() && !choice.search_directory.empty()) {
        throw Error(ExitCode::usage, {"--search-directory without --search",
                                      "the directory is used only by a search",
                                      "Name the search's SPACE file with --search"});
    }
    if (choice.search.empty()) {
        return;
    }
    if (told.force) {
        throw Error(ExitCode::usage, {"--search cannot be combined with --force",
                                      "trials of a search are never resumed with a changed deck",
                                      "Leave --force out"});
    }
}

/// An option of this command and a key of the deck may say the same, but not both.
void require_said_once(launch::LaunchChoice const& choice) {
    config::DeckSource command_line;
    command_line.take_options(choice.train);
    for (auto const& [option, is_set, key] :
         {std::tuple{"--mode", !choice.mode.empty(), "run.mode"},
          {"--scale-rate", !choice.scale_rate.empty(), "optimizer.scale-learning-rate"},
          {"--restarts", choice.restarts >= 0, "fault-tolerance.restarts"}}) {
        if (is_set && command_line.values().contains(key)) {
            throw Error(ExitCode::usage, {concat(option, " and --", key), "both set the same",
                                          "Keep one of the two"});
        }
    }
}

ExitCode launch_as_told(Invocation const& invocation) {
    require_start_limit();
    LaunchTold told;
    require_no_launcher("launch");
    told.choice.train = launch_options(told).parse(invocation.arguments).all();
    require_said_once(told.choice);
    if (told.force) {
        told.choice.train.emplace_back("--force");
    }
    require_job_for_its_shape(told.choice);
    require_fit_for_search(told);
    return launch::launch(told.choice, told.show  ? launch::Consent::to_show
                                       : told.yes ? launch::Consent::given
                                                  : launch::Consent::ask);
}

} // namespace

/// What keeps the run of a script from its start is the root cause of the job's end, and told as
/// such.
ExitCode launch_command(Invocation const& invocation) {
    try {
        return launch_as_told(invocation);
    } catch (...) {
        if (!std::ranges::count(invocation.arguments, "--yes")) {
            throw;
        }
        auto const error = current_error();
        auto const& text = error.text();
        throw Error(error.code(), {concat("root cause: ", text.what), text.why, text.next});
    }
}

std::string launch_help(HelpWords const&) {
    return help_of(launch_options);
}

} // namespace lockstep::app
