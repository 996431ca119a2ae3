// Ends with 0 when MPI grants threads that take turns, with 64 when it does not.
#include <mpi.h>

int main(int argc, char** argv) {
    int provided = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) {
        return 1;
    }
    MPI_Finalize();
    return provided >= MPI_THREAD_SERIALIZED ? 0 : 64;
}
