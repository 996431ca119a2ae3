// Preloaded into a run, lists what collectives of MPI rank 0 calls before the first message of
// training, for bench/simulate_start.py: one line per call, with the ranks that take part, the
// hosts that these are on, and the bytes. It pretends that so many successive ranks share a host
// ($START_RANKS_PER_HOST), so that one machine shows what many hosts would do. Bytes are those that
// one rank contributes, on average over the ranks.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace {

int ranks_per_host() {
    auto const* const text = std::getenv("START_RANKS_PER_HOST");
    return text == nullptr ? 1 : std::atoi(text);
}

/// The calls of this process.
class Listing {
  public:
    void add(char const* call, MPI_Comm comm, double bytes) {
        std::scoped_lock const lock(mutex_);
        if (file_ == nullptr) {
            return;
        }
        auto const [ranks, hosts] = extent_of(comm);
        std::fprintf(file_, "%s %d %d %.3f\n", call, ranks, hosts, bytes);
        std::fflush(file_);
    }
    /// After MPI_Init.
    void begin() {
        int rank = 0;
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (auto const* const path = std::getenv("START_CALLS"); rank == 0 && path != nullptr) {
            file_ = std::fopen(path, "w");
        }
    }
    void end() {
        std::scoped_lock const lock(mutex_);
        if (file_ != nullptr) {
            std::fclose(file_);
            file_ = nullptr;
        }
    }

  private:
    static std::pair<int, int> extent_of(MPI_Comm comm) {
        int ranks = 0;
        PMPI_Comm_size(comm, &ranks);
        std::vector<int> local(static_cast<std::size_t>(ranks));
        std::iota(local.begin(), local.end(), 0);
        auto world = local;
        MPI_Group here{};
        MPI_Group all{};
        PMPI_Comm_group(comm, &here);
        PMPI_Comm_group(MPI_COMM_WORLD, &all);
        PMPI_Group_translate_ranks(here, ranks, local.data(), all, world.data());
        PMPI_Group_free(&here);
        PMPI_Group_free(&all);
        std::set<int> hosts;
        for (int const rank : world) {
            hosts.insert(rank / ranks_per_host());
        }
        return {ranks, static_cast<int>(hosts.size())};
    }

    std::mutex mutex_;
    std::FILE* file_ = nullptr;
};

Listing& listing() {
    static Listing all;
    return all;
}

double size_of(MPI_Datatype type) {
    int bytes = 0;
    PMPI_Type_size(type, &bytes);
    return bytes;
}

double mean(int const* counts, MPI_Comm comm) {
    int ranks = 0;
    PMPI_Comm_size(comm, &ranks);
    return std::accumulate(counts, counts + ranks, 0.0) / ranks;
}

} // namespace

extern "C" {

int MPI_Init_thread(int* count, char*** words, int wanted, int* given) {
    int const code = PMPI_Init_thread(count, words, wanted, given);
    listing().begin();
    return code;
}

int MPI_Get_processor_name(char* name, int* length) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *length = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "node%05d", rank / ranks_per_host());
    return MPI_SUCCESS;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) {
    listing().add("split", comm, 0);
    if (type != MPI_COMM_TYPE_SHARED) {
        return PMPI_Comm_split_type(comm, type, key, info, part);
    }
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return PMPI_Comm_split(comm, rank / ranks_per_host(), key, part);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) {
    listing().add("split", comm, 0);
    return PMPI_Comm_split(comm, color, key, part);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
    listing().add("dup", comm, 0);
    return PMPI_Comm_dup(comm, copy);
}

int MPI_Barrier(MPI_Comm comm) {
    listing().add("barrier", comm, 0);
    return PMPI_Barrier(comm);
}

int MPI_Bcast(void* values, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    listing().add("bcast", comm, count * size_of(type));
    return PMPI_Bcast(values, count, type, root, comm);
}

int MPI_Allreduce(void const* own, void* all, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
    listing().add("allreduce", comm, count * size_of(type));
    return PMPI_Allreduce(own, all, count, type, op, comm);
}

int MPI_Allgather(void const* own, int count, MPI_Datatype type, void* all, int each,
                  MPI_Datatype types, MPI_Comm comm) {
    listing().add("allgather", comm, each * size_of(types));
    return PMPI_Allgather(own, count, type, all, each, types, comm);
}

int MPI_Allgatherv(void const* own, int count, MPI_Datatype type, void* all, int const* counts,
                   int const* places, MPI_Datatype types, MPI_Comm comm) {
    listing().add("allgatherv", comm, mean(counts, comm) * size_of(types));
    return PMPI_Allgatherv(own, count, type, all, counts, places, types, comm);
}

/// Receives texts, along a tree.
int MPI_Recv(void* values, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status) {
    listing().add("receive", comm, count * size_of(type));
    return PMPI_Recv(values, count, type, from, tag, comm, status);
}

int MPI_Ibcast(void* values, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
    listing().end(); // the first step has begun
    return PMPI_Ibcast(values, count, type, root, comm, request);
}

int MPI_Irecv(void* values, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
    listing().end();
    return PMPI_Irecv(values, count, type, from, tag, comm, request);
}
}
