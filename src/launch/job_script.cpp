#include "job_script.hpp"

#include "base/batch_job.hpp"
#include "base/child.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "choice.hpp"

namespace lockstep::launch {

namespace {

constexpr double longest_notice_s = 120;

struct Shape {
    std::string name; ///< of the run or the search
    std::int64_t nodes, ranks, threads, gpus;
    std::string time, partition, account;
};

/// Seconds before its end at which a job is told of it; of a short one not its first half.
int notice_s(std::string const& time) {
    return static_cast<int>(
        std::min(longest_notice_s, seconds_of(time).value_or(longest_notice_s) / 5));
}

/// A job's name from that of a directory: letters, digits, . _ and -, and _ for all others.
std::string job_name(std::string name) {
    std::ranges::replace_if(
        name,
        [](unsigned char letter) {
            return std::isalnum(letter) == 0 && letter != '.' && letter != '_' && letter != '-';
        },
        '_');
    return name;
}

Shape shape_of(LaunchChoice const& choice, config::Deck const& deck) {
    auto const mode = mode_of(choice, deck);
    bool const one = mode != "ddp"; // one process
    Shape shape{.name = job_name(directory_of(choice, deck).filename().string()),
                .nodes = one ? 1 : std::max<std::int64_t>(choice.nodes, 1),
                .ranks = one ? 1 : choice.devices,
                .threads = deck.run.threads,
                .gpus = std::max<std::int64_t>(choice.gpus, 0),
                .time = choice.time,
                .partition = choice.partition,
                .account = choice.account};
    if (mode == "dp") {
        shape.threads *= std::max({choice.devices, deck.run.replicas, std::int64_t{1}});
    }
    if (shape.ranks == 0) {
        throw Error(ExitCode::usage,
                    {concat("--submit ", choice.submit),
                     "the number of ranks per node is not known",
                     "Give the ranks per node as --devices N, and the GPUs per node, if any, as "
                     "--gpus-per-node M"});
    }
    return shape;
}

std::string slurm_head(Shape const& job) {
    return concat(
        "#SBATCH --job-name=", job.name, "\n#SBATCH --nodes=", job.nodes,
        "\n#SBATCH --ntasks-per-node=", job.ranks, "\n#SBATCH --cpus-per-task=", job.threads, "\n",
        job.partition.empty() ? "" : concat("#SBATCH --partition=", job.partition, "\n"),
        job.account.empty() ? "" : concat("#SBATCH --account=", job.account, "\n"),
        job.gpus > 0 ? concat("#SBATCH --gpus-per-node=", job.gpus, "\n") : "",
        "#SBATCH --time=", job.time,
        "\n#SBATCH --output=%x-%j.out\n#SBATCH --open-mode=append\n#SBATCH --signal=B:USR1@",
        notice_s(job.time), "\n#SBATCH --requeue\n");
}

std::string pbs_head(Shape const& job) {
    return concat("#PBS -N ", job.name, "\n",
                  job.partition.empty() ? "" : concat("#PBS -q ", job.partition, "\n"),
                  job.account.empty() ? "" : concat("#PBS -A ", job.account, "\n"),
                  "#PBS -l select=", job.nodes, ":ncpus=", job.ranks * job.threads,
                  ":mpiprocs=", job.ranks, job.gpus > 0 ? concat(":ngpus=", job.gpus) : "",
                  "\n#PBS -l place=scatter\n#PBS -l walltime=", job.time,
                  "\n#PBS -j oe\n#PBS -r y\n#PBS -V\n");
}

/// One run says so, too: jobs get the environment of whoever submits them.
std::string search_lines(LaunchChoice const& choice) {
    return concat("SEARCH=", shell_line({choice.search}),
                  "\nSEARCH_DIRECTORY=", shell_line({choice.search_directory}), "\n");
}

/// Words of the deck, then the rest: the scripts take one deck by INPUT.
std::string script_words(std::vector<std::string> words, std::string& input) {
    for (auto at = words.begin(); at != words.end(); ++at) {
        if (!at->starts_with("--")) {
            input = *at;
            words.erase(at);
            break;
        }
        if (at->find('=') == std::string::npos && *at != "--force") {
            ++at; // the value of an option
        }
    }
    return shell_line(words);
}

} // namespace

std::string script_directory() {
    namespace fs = std::filesystem;
    auto const program = own_program().parent_path();
    for (auto const& place : {program / "../share/lockstep", program / ".."}) {
        if (fs::exists(place / "scripts/job.sh")) {
            return fs::canonical(place).string();
        }
    }
    throw Error(ExitCode::no_input, {"the job scripts (scripts/job.sh) are missing",
                                     concat("they are neither in ", (program / "..").string(),
                                            " nor in ", (program / "../share/lockstep").string()),
                                     "Install the program with cmake --install"});
}

std::string job_script_path(LaunchChoice const& choice) {
    return directory_of(choice, deck_of(choice)).string() +
           (choice.submit == "slurm" ? ".sbatch" : ".pbs");
}

std::string job_script(LaunchChoice const& choice) {
    auto const deck = deck_of(choice);
    auto const shape = shape_of(choice, deck);
    bool const slurm = choice.submit == "slurm";
    auto const path = job_script_path(choice);
    auto const restarts =
        choice.restarts < 0 ? std::int64_t{shape.nodes > 1 ? 2 : 0} : choice.restarts;
    std::string input;
    auto const words = script_words(train_words(choice, deck), input);
    bool const one = mode_of(choice, deck) != "ddp";
    return concat("#!/bin/bash\n# Written by lockstep launch. To submit it again: ",
                  slurm ? "sbatch " : "qsub ", path, "\n",
                  slurm ? slurm_head(shape) : pbs_head(shape), "\nset -euo pipefail\ncd \"$",
                  slurm ? "SLURM_SUBMIT_DIR" : "PBS_O_WORKDIR",
                  "\"\nEXE=", shell_line({own_program().string()}), "\nINPUT=", shell_line({input}),
                  "\nRESTARTS=", restarts, "\n",
                  choice.min_hosts > 1 ? concat("MIN_HOSTS=", choice.min_hosts, "\n") : "",
                  choice.spares > 0 ? concat("SPARES=", choice.spares, "\n") : "",
                  search_lines(choice), one ? "LAUNCH=env # one process: no launcher\n" : "",
                  choice.launcher == "srun" ? "LAUNCH=\"srun --mpi=pmix\"\nLAUNCHER=srun\n" : "",
                  slurm ? "" : concat("script=", shell_line({path}), "\n"), "source ",
                  shell_line({concat(script_directory(), slurm ? "/slurm/lib.sh" : "/pbs/lib.sh")}),
                  "\ntrain", words.empty() ? "" : " ", words, "\n");
}

std::string shell_line(std::vector<std::string> const& words) {
    constexpr char const* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_-./:=,+@%";
    std::string line;
    for (auto const& word : words) {
        line += line.empty() ? "" : " ";
        if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
            line += word;
            continue;
        }
        line += '\'';
        for (char const letter : word) {
            line += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
        }
        line += '\'';
    }
    return line;
}

} // namespace lockstep::launch
