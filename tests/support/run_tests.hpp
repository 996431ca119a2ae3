#pragma once

namespace lockstep::test {

/// Runs what the command line, Catch2's, chooses; 0 when all of it passed.
int run_tests(int argc, char** argv);

} // namespace lockstep::test
