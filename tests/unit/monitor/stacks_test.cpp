#include "base/text.hpp"
#include "monitor/stacks.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <unistd.h>

#include "catch.hpp"

using namespace lockstep;

namespace {

/// Lines of a thread's stack; -1 where the thread is not there. MPI has threads, too.
int lines_of(std::string const& text, int thread) {
    auto at = text.find(concat("thread ", thread, " "));
    int lines = -1;
    while (at != std::string::npos && (lines < 0 || !text.substr(at).starts_with("thread "))) {
        ++lines;
        auto const end = text.find('\n', at);
        at = end + 1 < text.size() ? end + 1 : std::string::npos;
    }
    return lines;
}

} // namespace

TEST_CASE("a thread that hears of it too late neither ends the process nor spoils another answer") {
    std::atomic<int> state{0};
    std::atomic<int> own{0};
    std::thread late([&] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
        own.store(::gettid());
        state.store(1);
        while (state.load() == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        sigemptyset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr); // now it hears
        state.store(3);
        while (state.load() == 3) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    while (state.load() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    auto const first = monitor::stacks_of_other_threads();
    CHECK(lines_of(first, own.load()) == 0);
    state.store(2);
    while (state.load() == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    while (lines_of(monitor::stacks_of_other_threads(), own.load()) <= 0) {
    }
    state.store(4);
    late.join();
}
