// Preloaded into a program, this tells at MPI's end, in a line of the file LOCKSTEP_HANDLES:
//   communicators, groups, infos  those that were made and not freed, and their peak
//   files_beside  how often the main thread asked HDF5 for a file while another thread had one
//                 open; with LOCKSTEP_SLOW_CLOSE=1 other threads close theirs a fifth of a second
//                 later
//   usage         open descriptors and KiB of memory: when the 10th communicator of chosen ranks
//                 was made, the 500th, and at the end

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <unistd.h>

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

namespace {

template <class Function>
Function* next(char const* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// Handles of one kind.
struct Count {
    std::atomic<int> live{0};
    std::atomic<int> peak{0};

    int made(int code) {
        if (code == MPI_SUCCESS) {
            peak = std::max(peak.load(), ++live);
        }
        return code;
    }
    int freed(int code) {
        live -= code == MPI_SUCCESS ? 1 : 0;
        return code;
    }
};

Count communicators; // NOLINT(*-non-const-global-variables)
Count groups;        // NOLINT(*-non-const-global-variables)
Count infos;         // NOLINT(*-non-const-global-variables)

/// What the process uses.
struct Usage {
    std::ptrdiff_t descriptors = 0;
    std::int64_t memory = 0; ///< resident, KiB

    static Usage now() {
        Usage usage;
        usage.descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
        std::int64_t size = 0;
        std::ifstream("/proc/self/statm") >> size >> usage.memory;
        usage.memory *= ::sysconf(_SC_PAGESIZE) / 1024;
        return usage;
    }
};

constexpr std::array<int, 2> looked_at{10, 500}; ///< groups of ranks
std::array<Usage, 2> usages;                     // NOLINT(*-non-const-global-variables)

void look() {
    static std::atomic<int> made{0};
    auto const at = std::ranges::find(looked_at, ++made);
    if (at != looked_at.end()) {
        usages.at(static_cast<std::size_t>(at - looked_at.begin())) = Usage::now();
    }
}

std::atomic<int> open_elsewhere{0}; // NOLINT(*-non-const-global-variables)
std::atomic<int> beside{0};         // NOLINT(*-non-const-global-variables)

bool is_main() {
    return ::gettid() == ::getpid();
}

void note_call() {
    beside += is_main() && open_elsewhere > 0 ? 1 : 0;
}

std::int64_t opened(std::int64_t file) {
    open_elsewhere += file >= 0 && !is_main() ? 1 : 0;
    return file;
}

void tell() {
    char const* const path = std::getenv("LOCKSTEP_HANDLES");
    if (path == nullptr) {
        return;
    }
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    auto const last = Usage::now();
    std::string line = "{\"rank\":" + std::to_string(rank);
    for (auto const& [name, count] :
         {std::pair("communicators", &communicators), {"groups", &groups}, {"infos", &infos}}) {
        line += ",\"" + std::string(name) + "\":[" + std::to_string(count->live) + "," +
                std::to_string(count->peak) + "]";
    }
    line += ",\"files_beside\":" + std::to_string(beside) + ",\"usage\":[";
    for (auto const& usage : {usages[0], usages[1], last}) {
        line += "[" + std::to_string(usage.descriptors) + "," + std::to_string(usage.memory) + "],";
    }
    line.back() = ']';
    std::ofstream(path, std::ios::app) << line + "}\n";
}

} // namespace

extern "C" {

int MPI_Comm_dup(MPI_Comm of, MPI_Comm* made) {
    return communicators.made(PMPI_Comm_dup(of, made));
}

int MPI_Comm_split(MPI_Comm of, int color, int key, MPI_Comm* made) {
    return communicators.made(PMPI_Comm_split(of, color, key, made));
}

int MPI_Comm_split_type(MPI_Comm of, int type, int key, MPI_Info info, MPI_Comm* made) {
    return communicators.made(PMPI_Comm_split_type(of, type, key, info, made));
}

int MPI_Comm_create_group(MPI_Comm of, MPI_Group group, int tag, MPI_Comm* made) {
    look();
    return communicators.made(PMPI_Comm_create_group(of, group, tag, made));
}

int MPI_Comm_free(MPI_Comm* handle) {
    return communicators.freed(PMPI_Comm_free(handle));
}

int MPI_Comm_group(MPI_Comm of, MPI_Group* made) {
    return groups.made(PMPI_Comm_group(of, made));
}

int MPI_Group_incl(MPI_Group of, int count, int const* ranks, MPI_Group* made) {
    return groups.made(PMPI_Group_incl(of, count, ranks, made));
}

int MPI_Group_free(MPI_Group* handle) {
    return groups.freed(PMPI_Group_free(handle));
}

int MPI_Info_dup(MPI_Info of, MPI_Info* made) {
    return infos.made(PMPI_Info_dup(of, made));
}

int MPI_Info_create(MPI_Info* made) {
    return infos.made(PMPI_Info_create(made));
}

int MPI_Info_free(MPI_Info* handle) {
    return infos.freed(PMPI_Info_free(handle));
}

int MPI_Finalize() {
    tell();
    return PMPI_Finalize();
}

std::int64_t H5Fcreate(char const* path, unsigned flags, std::int64_t create, std::int64_t access) {
    note_call();
    return opened(next<decltype(H5Fcreate)>("H5Fcreate")(path, flags, create, access));
}

std::int64_t H5Fopen(char const* path, unsigned flags, std::int64_t access) {
    note_call();
    return opened(next<decltype(H5Fopen)>("H5Fopen")(path, flags, access));
}

int H5Fclose(std::int64_t file) {
    note_call();
    if (!is_main() && std::getenv("LOCKSTEP_SLOW_CLOSE") != nullptr) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
    int const code = next<decltype(H5Fclose)>("H5Fclose")(file);
    open_elsewhere -= is_main() ? 0 : 1;
    return code;
}
}
