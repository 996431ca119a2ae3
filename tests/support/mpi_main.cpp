// Main of the MPI tests. Every rank runs the same test cases; rank 0 prints, the others only when
// a test failed on them; the verdict is reduced, so that all ranks end alike. Assertions that
// guard a collective go through all_ranks(), or one rank would enter the next test alone.

#include "comm/collectives.hpp"
#include "lockstep/app/own_process.hpp"
#include "lockstep/comm/session.hpp"

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>

#include "run_tests.hpp"
#include "world.hpp"

namespace {

lockstep::comm::Communicator const* the_world = nullptr;

/// `--expect-ranks N`: another number is a failure, never a pass. `--hang-rank R`: that rank waits
/// for a debugger.
int take_option(int& argc, char** argv, std::string_view name, int otherwise) {
    for (int i = 1; i + 1 < argc; ++i) {
        if (name == argv[i]) {
            int const value = std::atoi(argv[i + 1]);
            for (int j = i; j + 2 < argc; ++j) {
                argv[j] = argv[j + 2];
            }
            argc -= 2;
            return value;
        }
    }
    return otherwise;
}

void wait_for_debugger() {
    bool volatile waiting = true;
    std::cerr << "waiting for a debugger: gdb -p " << getpid() << ", set waiting = 0\n";
    while (waiting) {
        sleep(1);
    }
}

} // namespace

namespace lockstep::test {
comm::Communicator const& world() {
    return *the_world;
}
} // namespace lockstep::test

int main(int argc, char** argv) {
    using namespace lockstep;
    own_process(); // as the program does
    comm::MpiSession session(argc, argv);
    auto const& world = session.world();
    the_world = &world;
    int const expected = take_option(argc, argv, "--expect-ranks", world.size());
    if (take_option(argc, argv, "--hang-rank", -1) == world.rank()) {
        wait_for_debugger();
    }

    std::ostringstream quiet;
    auto* const output = std::cout.rdbuf();
    if (!world.is_root()) {
        std::cout.rdbuf(quiet.rdbuf());
    }
    int const failed_here = test::run_tests(argc, argv);
    std::cout.rdbuf(output);
    if (failed_here != 0 && !world.is_root()) {
        std::cout << "--- rank " << world.rank() << "\n" << quiet.str() << std::flush;
    }
    if (world.size() != expected) {
        std::cout << "expected " << expected << " ranks, found " << world.size() << "\n";
    }
    bool const failed = failed_here != 0 || world.size() != expected;
    return comm::all_reduce(world, failed ? 1 : 0, comm::Reduce::maximum);
}
