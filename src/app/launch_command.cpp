#include "app/command.hpp"
#include "base/arrival.hpp"
#include "launch/fit.hpp"
#include "launch/launch.hpp"

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
            throw RefusedValue{"it is hours:minutes:seconds",
                               "--time 12:00:00, or with days 2-00:00:00"};
        }
        choice.time = *known;
    };
    return {
        .command = "lockstep launch",
        .positions = {"[DECK]...", 0, 1000},
        .about = "Trains a deck with one rank on each device (GPU, or core) of this host, or of "
                 "all hosts of the Slurm or PBS job around it, and looks after the ranks: TERM, "
                 "INT and USR1 reach them as a request to end with a checkpoint; after the loss of "
                 "a rank they are started again on the hosts that still answer. On a terminal it "
                 "lists devices and scheduler, asks for what is not said below, and shows the "
                 "command or the job script before it uses it.",
        .rows =
            {option::flag("--yes", "asks no questions: one rank on each device", told.yes),
             option::flag("--show", "prints the command or the job script, and does nothing",
                          told.show),
             option::one_of("--mode", {"single", "dp", "ddp"},
                            "one process; its replicas on threads; or a rank per device",
                            choice.mode),
             option::whole("--devices N", "ranks on each host; with dp, replicas", choice.devices),
             option::flag("--oversubscribe", "allow more ranks than there are devices",
                          choice.oversubscribe),
             option::one_of("--scale-rate", {"none", "linear", "sqrt"},
                            "optimizer.scale-learning-rate", choice.scale_rate),
             option::flag("--force", "as in lockstep train", told.force),
             option::whole("--restarts N",
                           "restarts in a row without a newer checkpoint; fault-tolerance.restarts",
                           choice.restarts, {.least = 0}),
             option::one_of("--launcher", {"mpirun", "srun"}, "srun: inside a Slurm job",
                            choice.launcher),
             option::text("--hostfile FILE", "hosts, a line each: NAME [slots=N]", choice.hostfile),
             option::one_of("--submit", {"no", "slurm", "pbs"},
                            "writes runs/NAME.sbatch or .pbs and submits it; no: starts it here",
                            choice.submit),
             option::whole("--nodes N", "of that job", choice.nodes),
             option::whole("--gpus-per-node N", "as the partition has", choice.gpus, {.least = 0}),
             option::text("--partition NAME",
                          "of Slurm, or queue of PBS; else the scheduler's default",
                          choice.partition),
             option::text("--account NAME", "account that is charged for the job", choice.account),
             option::own("--time H:M:S", "12:00:00, or what the partition allows", time)},
        .deck_keys = true};
}

void require_job_for_its_shape(launch::LaunchChoice const& choice) {
    bool const shaped = choice.nodes > 0 || choice.gpus >= 0 || !choice.time.empty() ||
                        !choice.partition.empty() || !choice.account.empty();
    if (choice.submit == "no" && shaped) {
        throw Error(ExitCode::usage, {"a job's nodes, time, … with --submit no", "no job is made",
                                      "Name hosts by --hostfile, or submit a job"});
    }
}

} // namespace

ExitCode launch_command(Invocation const& invocation) {
    require_start_limit();
    LaunchTold told;
    told.choice.train = launch_options(told).parse(invocation.arguments).all();
    if (told.force) {
        told.choice.train.emplace_back("--force");
    }
    require_job_for_its_shape(told.choice);
    return launch::launch(told.choice, told.show  ? launch::Consent::to_show
                                       : told.yes ? launch::Consent::given
                                                  : launch::Consent::ask);
}

std::string launch_help(HelpWords const&) {
    return help_of(launch_options);
}

} // namespace lockstep::app
