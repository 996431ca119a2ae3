#include "base/arrival.hpp"

#include "base/arrived_ranks.hpp"
#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/host_facts.hpp"
#include "base/number.hpp"
#include "base/own_directory.hpp"
#include "base/own_file.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <unistd.h>

namespace lockstep {

namespace {

/// The first of these variables that is a number.
std::optional<int> number_in(std::initializer_list<char const*> names) {
    for (char const* name : names) {
        if (auto const number = environment_number<int>(name)) {
            return number;
        }
    }
    return std::nullopt;
}

struct Mark {
    std::string host;
    int process = 0;
};

/// Nothing where the rank has left none; without a host where it is only being written.
std::optional<Mark> mark_of(std::filesystem::path const& directory, int rank) {
    std::ifstream file(directory / std::to_string(rank));
    if (directory.empty() || !file) {
        return std::nullopt;
    }
    Mark mark;
    return file >> mark.host >> mark.process ? mark : Mark{};
}

/// The number of ranks, as the launchers of MPIs say it.
std::optional<int> number_of_mpi() {
    return number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"});
}

/// What torchrun, and launchers that do as it does, say of a process. One of the variables alone is
/// what a user's job script says.
std::optional<int> of_torchrun(char const* variable) {
    bool const whole = environment("RANK") && environment("WORLD_SIZE") &&
                       (environment("LOCAL_RANK") || environment("TORCHELASTIC_RUN_ID"));
    return whole ? number_in({variable}) : std::nullopt;
}

} // namespace

std::filesystem::path arrivals_directory() {
    if (auto const named = environment("LOCKSTEP_ARRIVALS")) {
        return *named;
    }
    auto const of_host = environment("PMIX_SERVER_TMPDIR");
    bool const only_host =
        launched_ranks() > 0 && number_in({"OMPI_COMM_WORLD_LOCAL_SIZE"}) == launched_ranks();
    return of_host && only_host ? std::filesystem::path(*of_host) / "lockstep-arrivals"
                                : std::filesystem::path();
}

int launched_rank() {
    return number_in({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"})
        .value_or(of_torchrun("RANK").value_or(number_in({"SLURM_PROCID"}).value_or(0)));
}

// Under mpirun inside a Slurm job the SLURM_* variables describe mpirun's daemons, not ranks.
int launched_ranks() {
    return number_of_mpi().value_or(
        of_torchrun("WORLD_SIZE").value_or(number_in({"SLURM_STEP_NUM_TASKS"}).value_or(0)));
}

bool torchrun_launched() {
    return !number_of_mpi() && of_torchrun("WORLD_SIZE").has_value();
}

void leave_arrival_mark(std::filesystem::path const& directory) {
    if (directory.empty()) {
        return;
    }
    try {
        make_own_directory(directory.parent_path());
        make_private_directory(directory);
        File::create_new(directory / std::to_string(launched_rank()))
            .append_text(concat(own_host(), " ", ::getpid()));
    } catch (Error const&) {
        // Then it counts as late, where MPI does not start; else nobody looks.
    }
}

std::vector<int> missed_ranks(std::filesystem::path const& directory, int ranks) {
    std::vector<int> absent;
    std::vector<int> stopped;
    for (int rank = 0; rank < ranks; ++rank) {
        auto const mark = mark_of(directory, rank);
        if (!mark) {
            absent.push_back(rank);
        } else if (mark->host == own_host()) {
            if (is_stopped(mark->process)) {
                stopped.push_back(rank);
            }
        }
    }
    return absent.empty() ? stopped : absent;
}

std::map<int, int> processes_here(std::filesystem::path const& directory, int ranks) {
    std::map<int, int> processes;
    for (auto const& each : arrived_ranks(directory, ranks)) {
        if (each.host == own_host()) {
            processes[each.rank] = each.process;
        }
    }
    return processes;
}

std::vector<ArrivedRank> arrived_ranks(std::filesystem::path const& directory, int ranks) {
    std::vector<ArrivedRank> arrived;
    for (int rank = 0; rank < ranks; ++rank) {
        if (auto const mark = mark_of(directory, rank); mark && !mark->host.empty()) {
            arrived.push_back({rank, mark->host, mark->process});
        }
    }
    return arrived;
}

std::string missing_text(std::vector<int> const& missed) {
    return missed.size() == 1 ? "it has not started, or is stopped"
                              : "they have not started, or are stopped";
}

bool any_arrived(std::filesystem::path const& directory) {
    std::error_code failure;
    return !std::filesystem::is_empty(directory, failure) && !failure;
}

} // namespace lockstep
