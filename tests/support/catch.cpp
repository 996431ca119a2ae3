// Catch2's own code.

#include "run_tests.hpp"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

namespace lockstep::test {

int run_tests(int argc, char** argv) {
    return Catch::Session().run(argc, argv);
}

} // namespace lockstep::test
