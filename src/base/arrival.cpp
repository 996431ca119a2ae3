#include "lockstep/base/arrival.hpp"

#include "lockstep/base/number.hpp"
#include "lockstep/base/process.hpp"
#include "lockstep/base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <unistd.h>

namespace lockstep {

namespace {

/// The first of these variables that is a number.
std::optional<int> number_in(std::initializer_list<char const*> names) {
    for (char const* name : names) {
        char const* const text = std::getenv(name);
        if (auto const number = text == nullptr ? std::nullopt : number_of<int>(text)) {
            return number;
        }
    }
    return std::nullopt;
}

} // namespace

std::filesystem::path arrivals_directory() {
    if (char const* const named = std::getenv("LOCKSTEP_ARRIVALS")) {
        return named;
    }
    char const* const of_host = std::getenv("PMIX_SERVER_TMPDIR");
    bool const only_host =
        launched_ranks() > 0 && number_in({"OMPI_COMM_WORLD_LOCAL_SIZE"}) == launched_ranks();
    return of_host != nullptr && only_host ? std::filesystem::path(of_host) / "lockstep-arrivals"
                                           : std::filesystem::path();
}

int launched_rank() {
    return number_in({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}).value_or(0);
}

// Under mpirun inside a Slurm job the SLURM_* variables describe mpirun's daemons, not ranks.
int launched_ranks() {
    return number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}).value_or(0);
}

void leave_arrival_mark(std::filesystem::path const& directory) {
    if (directory.empty()) {
        return;
    }
    std::error_code failure;
    std::filesystem::create_directories(directory, failure);
    std::ofstream(directory / std::to_string(launched_rank())) << own_host() << ' ' << ::getpid();
}

std::vector<int> missed_ranks(std::filesystem::path const& directory, int ranks) {
    std::vector<int> absent;
    std::vector<int> stopped;
    for (int rank = 0; rank < ranks; ++rank) {
        std::ifstream mark(directory / std::to_string(rank));
        std::string host;
        int process = 0;
        if (!mark) {
            absent.push_back(rank);
        } else if (mark >> host >> process && host == own_host()) {
            auto const state = process_state(process);
            if (state && state->state == 'T') {
                stopped.push_back(rank);
            }
        }
    }
    return absent.empty() ? stopped : absent;
}

std::string own_host() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

double start_limit_s(double otherwise) {
    char const* const text = std::getenv("LOCKSTEP_START_SECONDS");
    return text == nullptr ? otherwise : number_of<double>(text).value_or(otherwise);
}

bool any_arrived(std::filesystem::path const& directory) {
    std::error_code failure;
    return !std::filesystem::is_empty(directory, failure) && !failure;
}

std::string ranks_text(std::vector<int> const& ranks) {
    constexpr std::size_t most = 8;
    auto text = std::string(ranks.size() == 1 ? "rank " : "ranks ");
    for (std::size_t at = 0; at < std::min(ranks.size(), most); ++at) {
        text += concat(at == 0 ? "" : ", ", ranks[at]);
    }
    return ranks.size() > most ? concat(text, " and ", ranks.size() - most, " more") : text;
}

} // namespace lockstep
