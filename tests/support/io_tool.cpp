// Preloaded into a program, this counts calls of MPI-IO by MPI's profiling interface, as tools such
// as Darshan do; the first one makes the file LOCKSTEP_IO_TOOL_LOG, if that is set.

#include <atomic>
#include <cstdlib>
#include <fstream>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {

std::atomic<int> calls{0};

void noted() {
    char const* const log = std::getenv("LOCKSTEP_IO_TOOL_LOG");
    if (calls++ == 0 && log != nullptr) {
        std::ofstream(log, std::ios::app) << "called\n";
    }
}

} // namespace

extern "C" {

int lockstep_io_tool_calls() {
    return calls.load();
}

#define LOCKSTEP_COUNTED(NAME, DATA)                                                               \
    int MPI_##NAME(MPI_File file, MPI_Offset offset, DATA data, int count, MPI_Datatype type,      \
                   MPI_Status* status) {                                                           \
        noted();                                                                                   \
        return PMPI_##NAME(file, offset, data, count, type, status);                               \
    }

LOCKSTEP_COUNTED(File_read_at, void*)
LOCKSTEP_COUNTED(File_read_at_all, void*)
LOCKSTEP_COUNTED(File_write_at, void const*)
LOCKSTEP_COUNTED(File_write_at_all, void const*)

int MPI_File_sync(MPI_File file) {
    noted();
    return PMPI_File_sync(file);
}
}
