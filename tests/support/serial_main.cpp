// Main of the unit tests: one process, MPI_COMM_SELF at most.

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

int main(int argc, char** argv) {
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, [] {
        static int provided = 0;
        return &provided;
    }());
    int const result = Catch::Session().run(argc, argv);
    MPI_Finalize();
    return result;
}
