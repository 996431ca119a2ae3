#include "base/process.hpp"

#include "base/awake_clock.hpp"
#include "base/proc_file.hpp"
#include "base/text.hpp"

#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <thread>
#include <unistd.h>

namespace lockstep {

namespace {

double seconds_of(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

char state_of_thread(int thread) {
    auto const state = process_state(thread);
    return state ? state->state : 'X';
}

/// Nanoseconds that a thread has run; empty where the kernel does not count them.
std::string time_on_core(int thread) {
    auto const text = proc_text(concat("/proc/self/task/", thread, "/schedstat"));
    return text.substr(0, text.find(' '));
}

} // namespace

std::optional<ProcessState> process_state(int id) {
    auto const text = proc_text(concat("/proc/", id, "/stat"));
    auto const name_end = text.rfind(')'); // the name may hold anything
    if (name_end == std::string::npos) {
        return std::nullopt;
    }
    auto const fields = split(text.substr(name_end + 1), ' ');
    std::vector<std::string> filled;
    for (auto const& field : fields) {
        if (!field.empty()) {
            filled.push_back(field);
        }
    }
    constexpr std::size_t flags_field = 6; // the 9th of proc(5), the state being the third
    constexpr std::size_t start_field = 19;
    // PF_EXITING and PF_SIGNALED: it runs no more of its own code, though a host that is short of
    // cores may take many seconds to free what it held.
    constexpr std::uint64_t ending = 0x4 | 0x400;
    if (filled.size() <= start_field || filled[0] == "Z" || filled[0] == "X" ||
        (std::stoull(filled[flags_field]) & ending) != 0) {
        return std::nullopt;
    }
    constexpr std::size_t pending_field = 28;
    constexpr std::uint64_t kill_bit = std::uint64_t{1} << (SIGKILL - 1);
    bool const killed =
        filled.size() > pending_field && (std::stoull(filled[pending_field]) & kill_bit) != 0;
    return ProcessState{filled[0][0], std::stoull(filled[start_field]), killed};
}

bool is_stopped(int id) {
    auto const state = process_state(id);
    return state && state->state == 'T';
}

std::optional<ProcessState> settled_process_state(int id) {
    constexpr int looks = 10;
    auto state = process_state(id);
    for (int look = 1; look < looks && state && state->state == 'R'; ++look) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        state = process_state(id);
    }
    return state;
}

std::vector<int> threads_of_this_process() {
    std::vector<int> threads;
    std::error_code error;
    for (auto const& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
        threads.push_back(std::stoi(thread.path().filename()));
    }
    return threads;
}

bool let_run(std::vector<int> const& threads, std::chrono::milliseconds limit) {
    std::vector<std::string> before;
    before.reserve(threads.size());
    for (int const thread : threads) {
        before.push_back(time_on_core(thread));
    }
    AwakeClock clock;
    auto const limit_s = std::chrono::duration<double>(limit).count();
    for (std::size_t i = 0; i < threads.size(); ++i) {
        while (!before[i].empty() && state_of_thread(threads[i]) == 'R' &&
               time_on_core(threads[i]) == before[i]) {
            if (clock.seconds() >= limit_s) {
                return false;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    return true;
}

std::optional<std::uint64_t> bytes_moved_by_other_threads() {
    std::uint64_t sum = 0;
    for (int const thread : threads_of_this_process()) {
        if (thread == ::gettid()) {
            continue;
        }
        auto const place = std::filesystem::path("/proc/self/task") / std::to_string(thread);
        auto const text = proc_text(place / "io");
        auto const read = proc_value(text, "rchar");
        auto const written = proc_value(text, "wchar");
        if (read && written) {
            sum += *read + *written;
        } else if (std::error_code error; std::filesystem::exists(place, error)) {
            return std::nullopt;
        }
    }
    return sum;
}

double processor_seconds_of_this_thread() {
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

double processor_seconds_of_other_threads() {
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

} // namespace lockstep
