#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/arrival.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "launch/dialog.hpp"
#include "launch/fit.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <unistd.h>

namespace lockstep::app {

namespace {

constexpr char const* launch_usage =
    "lockstep launch [--yes | --show] [DECK]... [OPTION]... [--section.key VALUE]...";

constexpr char const* launch_help = R"(
    Trains a deck with one rank on each device (GPU, or core) of this host, or of all hosts of the
    Slurm or PBS job around it, and looks after the ranks: TERM, INT and USR1 reach them as a
    request to end with a checkpoint; after the loss of a rank they are started again on the hosts
    that still answer. On a terminal it lists devices and scheduler, asks for what is not said
    below, and shows the command or the job script before it uses it.

    --yes              nothing is asked: one rank on each device
    --show             prints the command or the job script, and does nothing
    --mode NAME        single (one process), dp (its replicas on threads), ddp (a rank a device)
    --devices N        ranks on each host; with dp, replicas
    --oversubscribe    more ranks than devices are meant
    --scale-rate RULE  none, linear, sqrt: optimizer.scale-learning-rate
    --restarts N       restarts in a row without a newer checkpoint; fault-tolerance.restarts
    --launcher NAME    mpirun, or srun inside a Slurm job
    --hostfile FILE    hosts, a line each: NAME [slots=N]
    --submit NAME      writes runs/NAME.sbatch or .pbs and submits it; no: starts it here
    --nodes N          of that job
    --gpus-per-node N  as the partition has
    --partition NAME   of Slurm, or queue of PBS; else the scheduler's default
    --account NAME     that pays for it
    --time H:M:S       12:00:00, or what the partition allows
)";

std::int64_t whole_number(std::string const& option, std::string const& text, std::int64_t least) {
    auto const value = number_of<std::int64_t>(text);
    if (!value || *value < least) {
        throw Error(ExitCode::usage,
                    {concat(option, " ", text), concat("it is a whole number of at least ", least),
                     concat("Usage: ", launch_usage)});
    }
    return *value;
}

std::string one_of(std::vector<std::string>& arguments, std::string const& option,
                   std::vector<std::string> const& values) {
    auto value = take_option(arguments, option, "");
    if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end()) {
        throw Error(ExitCode::usage,
                    {concat(option, " ", value), concat("it can be ", joined(values, ", ")),
                     concat("Usage: ", launch_usage)});
    }
    return value;
}

std::string time_of(std::string const& text) {
    auto const time = text.empty() ? text : launch::job_time(text);
    if (!time) {
        throw Error(ExitCode::usage, {concat("--time ", text), "it is hours:minutes:seconds",
                                      "--time 12:00:00, or with days 2-00:00:00"});
    }
    return *time;
}

/// Takes the options of `launch` itself out of the arguments; the rest is for `train`.
launch::LaunchChoice choice_of(std::vector<std::string> arguments) {
    launch::LaunchChoice choice;
    auto const number = [&](char const* option, std::int64_t otherwise, std::int64_t least) {
        auto const text = take_option(arguments, option, "");
        return text.empty() ? otherwise : whole_number(option, text, least);
    };
    choice.mode = one_of(arguments, "--mode", {"single", "dp", "ddp"});
    choice.devices = number("--devices", 0, 1);
    choice.scale_rate = one_of(arguments, "--scale-rate", {"none", "linear", "sqrt"});
    choice.submit = one_of(arguments, "--submit", {"no", "slurm", "pbs"});
    choice.nodes = number("--nodes", 0, 1);
    choice.gpus = number("--gpus-per-node", -1, 0);
    choice.partition = take_option(arguments, "--partition", "");
    choice.account = take_option(arguments, "--account", "");
    choice.time = time_of(take_option(arguments, "--time", ""));
    choice.launcher = one_of(arguments, "--launcher", {"mpirun", "srun"});
    choice.hostfile = take_option(arguments, "--hostfile", "");
    choice.restarts = number("--restarts", -1, 0);
    choice.oversubscribe = take_flag(arguments, "--oversubscribe");
    choice.train = std::move(arguments);
    bool const job = choice.submit == "slurm" || choice.submit == "pbs";
    bool const shaped = choice.nodes > 0 || choice.gpus >= 0 || !choice.time.empty() ||
                        !choice.partition.empty() || !choice.account.empty();
    if (!job && choice.submit == "no" && shaped) {
        throw Error(ExitCode::usage, {"a job's nodes, time, … with --submit no", "no job is made",
                                      "Name hosts by --hostfile, or submit a job"});
    }
    return choice;
}

bool on_terminal() {
    return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
}

/// Writes the job script and becomes the command that submits it.
ExitCode submit(launch::LaunchChoice const& choice, bool yes) {
    auto const path = launch::job_script_path(choice);
    auto const script = launch::job_script(choice);
    std::string const command = choice.submit == "slurm" ? "sbatch" : "qsub";
    if (!yes) {
        launch::confirm(concat(path, ":\n\n", script),
                        concat("Write it and submit it by ", command));
    }
    make_directories(std::filesystem::absolute(path).parent_path());
    write_text_durably(path, script);
    std::cout << command << " " << path << "\nlockstep watch "
              << launch::deck_of(choice).run.directory << " waits for the run and shows it"
              << std::endl;
    ::execlp(command.c_str(), command.c_str(), path.c_str(), nullptr);
    throw Error(ExitCode::unavailable, {concat("cannot start ", command), system_text(errno),
                                        concat("Submit ", path, " where there is one")});
}

} // namespace

ExitCode launch_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (take_flag(arguments, "--help")) {
        std::cout << launch_usage << "\n" << launch_help;
        return ExitCode::ok;
    }
    require_start_limit();
    bool const yes = take_flag(arguments, "--yes");
    bool const show = take_flag(arguments, "--show");
    auto choice = choice_of(arguments);
    if (!yes && !show && !on_terminal()) {
        throw Error(ExitCode::usage, {"lockstep launch has questions",
                                      "input or output is no terminal", "Say --yes"});
    }
    auto const scheduler = choice.submit == "no" || ((yes || show) && choice.submit.empty())
                               ? launch::Scheduler()
                               : launch::find_scheduler();
    if (!yes && !show) {
        launch::ask_for_the_rest(choice, scheduler);
    }
    if (choice.submit == "slurm" || choice.submit == "pbs") {
        launch::settle_job(choice, scheduler);
        if (show) {
            std::cout << launch::job_script(choice);
            return ExitCode::ok;
        }
        return submit(choice, yes);
    }
    auto const plan = launch::plan_of(choice);
    auto const line = launch::shell_line(launch::launch_words(plan, plan.hosts));
    if (show) {
        std::cout << line << "\n";
        return ExitCode::ok;
    }
    if (!yes) {
        launch::confirm(line, "Start it");
    }
    return launch::supervise(plan);
}

} // namespace lockstep::app
