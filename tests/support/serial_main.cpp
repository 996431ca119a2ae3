// Main of the unit tests: one process, MPI_COMM_SELF at most.

#include "run_tests.hpp"

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

int main(int argc, char** argv) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, [] {
        static int provided = 0;
        return &provided;
    }());
    int const result = lockstep::test::run_tests(argc, argv);
    MPI_Finalize();
    return result;
}
