#include "base/awake_clock.hpp"

#include <chrono>
#include <csignal>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "catch.hpp"

using lockstep::AwakeClock;

namespace {

void nap(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

} // namespace

TEST_CASE("time between looks counts") {
    AwakeClock clock;
    double last = 0;
    for (int look = 0; look < 4; ++look) {
        nap(0.05);
        CHECK(clock.seconds() >= last + 0.05);
        last = clock.seconds();
    }
}

TEST_CASE("of a process that is stopped, the time does not count") {
    pid_t const child = ::fork();
    if (child == 0) {
        AwakeClock clock;
        ::kill(::getpid(), SIGSTOP);
        ::_exit(clock.seconds() <= AwakeClock::longest_pause_s ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, WUNTRACED) == child);
    REQUIRE(WIFSTOPPED(status));
    nap(AwakeClock::longest_pause_s + 0.2);
    ::kill(child, SIGCONT);
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
