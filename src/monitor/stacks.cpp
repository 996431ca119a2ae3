#include "stacks.hpp"

#include "base/descriptor.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <execinfo.h>
#include <fstream>
#include <mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace lockstep::monitor {

namespace {

constexpr int max_frames = 64;

// A handler may touch only lock-free static storage.
std::atomic<int> output{-1};
std::atomic<bool> written{false};

void write_stack(int) {
    std::array<void*, max_frames> frames;
    int const count = ::backtrace(frames.data(), max_frames);
    ::backtrace_symbols_fd(frames.data(), count, output.load());
    written.store(true);
}

/// A signal that nobody else uses.
int own_signal() {
    return SIGRTMIN + 3;
}

/// A thread may handle the signal long after it was sent, and write then: the handler and its file
/// stay until the process ends.
int prepared_file() {
    static Descriptor const memory(::memfd_create("stacks", MFD_CLOEXEC));
    if (memory.is_open() && output.exchange(memory.get()) < 0) {
        std::array<void*, 1> first{};
        ::backtrace(first.data(), 1); // loads what it needs, which a handler must not
        struct sigaction action {};
        action.sa_handler = write_stack;
        action.sa_flags = SA_RESTART;
        sigemptyset(&action.sa_mask);
        sigaction(own_signal(), &action, nullptr);
    }
    return memory.get();
}

void write(int file, std::string const& text) {
    if (::write(file, text.data(), text.size()) < 0) {
        // In memory; a stack that is not there is missed, no more.
    }
}

/// What lies behind `first`.
std::string contents(int file, off_t first) {
    auto const end = ::lseek(file, 0, SEEK_END);
    std::string text(static_cast<std::size_t>(std::max<off_t>(end - first, 0)), '\0');
    auto const bytes = ::pread(file, text.data(), text.size(), first);
    text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    return text;
}

} // namespace

std::string stacks_of_other_threads() {
    static std::mutex one_at_a_time;
    std::scoped_lock const lock(one_at_a_time);
    int const file = prepared_file();
    if (file < 0) {
        return {};
    }
    auto const first = ::lseek(file, 0, SEEK_END);
    for (int const thread : threads_of_this_process()) {
        if (thread == ::gettid()) {
            continue;
        }
        std::string name;
        std::getline(std::ifstream(concat("/proc/self/task/", thread, "/comm")) >> std::ws, name);
        write(file, concat("thread ", thread, " (", name, "):\n"));
        written.store(false);
        ::syscall(SYS_tgkill, ::getpid(), thread, own_signal());
        for (int wait = 0; wait < 50 && !written.load(); ++wait) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    return contents(file, first);
}

} // namespace lockstep::monitor
