// Main of the unit tests: one process, MPI_COMM_SELF at most.

#include "lockstep/comm/session.hpp"

#include "run_tests.hpp"

int main(int argc, char** argv) {
    lockstep::comm::MpiSession const session(argc, argv);
    return lockstep::test::run_tests(argc, argv);
}
