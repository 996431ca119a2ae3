// Preloaded into a program, this counts calls of MPI-IO by MPI's profiling interface, as tools such
// as Darshan do.

#include <atomic>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {

std::atomic<int> calls{0};

} // namespace

extern "C" {

int lockstep_io_tool_calls() {
    return calls.load();
}

#define LOCKSTEP_COUNTED(NAME, DATA)                                                               \
    int MPI_##NAME(MPI_File file, MPI_Offset offset, DATA data, int count, MPI_Datatype type,      \
                   MPI_Status* status) {                                                           \
        ++calls;                                                                                   \
        return PMPI_##NAME(file, offset, data, count, type, status);                               \
    }

LOCKSTEP_COUNTED(File_read_at, void*)
LOCKSTEP_COUNTED(File_read_at_all, void*)
LOCKSTEP_COUNTED(File_write_at, void const*)
LOCKSTEP_COUNTED(File_write_at_all, void const*)

int MPI_File_sync(MPI_File file) {
    ++calls;
    return PMPI_File_sync(file);
}
}
