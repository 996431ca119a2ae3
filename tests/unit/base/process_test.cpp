#include "base/memory_kills.hpp"
#include "base/process.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "catch.hpp"

using namespace lockstep;

namespace {

/// A child that sleeps, until it goes.
struct Child {
    Child() : id(::fork()) {
        if (id == 0) {
            ::pause();
            ::_exit(0);
        }
    }
    Child(Child const&) = delete;
    Child& operator=(Child const&) = delete;
    ~Child() {
        ::kill(id, SIGKILL);
        ::waitpid(id, nullptr, 0);
    }
    pid_t id;
};

} // namespace

TEST_CASE(
    "a process that is stopped says so; one that has ended is none, even if nobody took note") {
    Child const child;
    REQUIRE(process_state(child.id));
    auto const started = process_state(child.id)->started;
    CHECK(started >= process_state(::getpid())->started);
    int status = 0;
    ::kill(child.id, SIGSTOP);
    ::waitpid(child.id, &status, WUNTRACED);
    REQUIRE(process_state(child.id));
    CHECK(process_state(child.id)->state == 'T');
    CHECK(process_state(child.id)->started == started);
    ::kill(child.id, SIGKILL);
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(child.id), &ended, WEXITED | WNOWAIT);
    CHECK_FALSE(process_state(child.id)); // a zombie
}

TEST_CASE("a process that was killed is gone even while the kernel takes long to end it") {
    Child const child;
    // The tracer holds it in its exit, as a host without a free core does.
    if (::ptrace(PTRACE_SEIZE, child.id, nullptr, PTRACE_O_TRACEEXIT) != 0) {
        WARN("ptrace is not allowed here: not tested");
        return;
    }
    ::kill(child.id, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child.id, &status, __WALL) == child.id);
    CHECK(WIFSTOPPED(status)); // it is not a zombie yet
    CHECK_FALSE(process_state(child.id));
    ::ptrace(PTRACE_DETACH, child.id, nullptr, 0);
}

TEST_CASE("one that was killed says so before it has run again") {
    cpu_set_t before;
    REQUIRE(::sched_getaffinity(0, sizeof(before), &before) == 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
        if (CPU_ISSET(core, &before)) {
            CPU_SET(core, &one);
        }
    }
    REQUIRE(::sched_setaffinity(0, sizeof(one), &one) == 0); // one core for both,
    Child const child;
    sched_param const none{};
    REQUIRE(::sched_setscheduler(child.id, SCHED_IDLE, &none) == 0); // which the child gets last
    REQUIRE(process_state(child.id));
    CHECK_FALSE(process_state(child.id)->killed);
    ::kill(child.id, SIGKILL);
    if (auto const state = process_state(child.id)) { // else this process was made to wait as long
        CHECK(state->killed);
    }
    ::sched_setaffinity(0, sizeof(before), &before);
}

TEST_CASE("one that wakes up now and then does not run, one that computes does") {
    Child const sleeper;
    CHECK(settled_process_state(sleeper.id)->state == 'S');
    pid_t const computing = ::fork();
    if (computing == 0) {
        std::atomic<int> steps = 0;
        while (true) {
            ++steps;
        }
    }
    auto const state = settled_process_state(computing);
    ::kill(computing, SIGKILL);
    ::waitpid(computing, nullptr, 0);
    CHECK(state->state == 'R');
}

TEST_CASE("a thread that was woken is waited for until it gets a core") {
    cpu_set_t before;
    REQUIRE(::sched_getaffinity(0, sizeof(before), &before) == 0);
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &before)) {
            cores.push_back(core);
        }
    }
    if (cores.size() < 2) {
        WARN("one core only: not tested");
        return;
    }
    auto const stay_on = [](int core) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        ::sched_setaffinity(0, sizeof(one), &one);
    };
    std::atomic<int> sleeper{0};
    std::atomic<int> taken{0}; // 1: by the thread that has priority, 2: refused
    std::atomic<bool> woken{false};
    std::atomic<bool> leave{false};
    stay_on(cores[0]);
    std::thread woken_thread([&] {
        stay_on(cores[1]);
        sleeper = ::gettid();
        woken.wait(false);
        leave.wait(false);
    });
    while (sleeper == 0 || process_state(sleeper)->state != 'S') {
        std::this_thread::yield();
    }
    CHECK(let_run({sleeper}, std::chrono::milliseconds(0))); // it has nothing to do
    std::thread first([&] {
        stay_on(cores[1]);
        sched_param const priority{1};
        if (::sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
            taken = 2;
            return;
        }
        taken = 1;
        while (!leave) {
        }
    });
    while (taken == 0) {
        std::this_thread::yield();
    }
    auto const start = std::chrono::steady_clock::now();
    woken = true;
    woken.notify_one();
    bool const ran = let_run({sleeper}, std::chrono::milliseconds(50));
    // The kernel leaves others a share of each second.
    bool const alone = std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500);
    if (taken == 1 && alone) {
        CHECK_FALSE(ran);
    } else {
        WARN("no thread may be given priority here, or this one was held up: not tested");
    }
    leave = true;
    leave.notify_all();
    CHECK(let_run({sleeper}, std::chrono::seconds(60)));
    woken_thread.join();
    first.join();
    ::sched_setaffinity(0, sizeof(before), &before);
}

TEST_CASE("what other threads read counts, what the own thread reads does not") {
    auto const before = bytes_moved_by_other_threads();
    if (!before) {
        WARN("this kernel does not count what threads read: not tested");
        return;
    }
    auto const read = [](int bytes) {
        std::ifstream in("/dev/zero");
        std::string buffer(static_cast<std::size_t>(bytes), ' ');
        in.read(buffer.data(), bytes);
    };
    read(1 << 20);
    CHECK(bytes_moved_by_other_threads() == before);
    std::atomic<bool> done{false};
    std::atomic<bool> leave{false};
    std::thread other([&] {
        read(1 << 20);
        done = true;
        while (!leave) {
            std::this_thread::yield();
        }
    });
    while (!done) {
        std::this_thread::yield();
    }
    CHECK(*bytes_moved_by_other_threads() >= *before + (1 << 20));
    leave = true;
    other.join();
}

TEST_CASE("memory kills are counted somewhere") {
    auto const kills = memory_kills_of(::getpid());
    CHECK_FALSE(kills.where.empty());
    CHECK(std::filesystem::exists(kills.file));
}
