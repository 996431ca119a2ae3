#include "stacks.hpp"

#include "base/descriptor.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <execinfo.h>
#include <fstream>
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

extern "C" void write_stack(int) {
    std::array<void*, max_frames> frames;
    int const count = ::backtrace(frames.data(), max_frames);
    ::backtrace_symbols_fd(frames.data(), count, output.load());
    written.store(true);
}

/// Installs the handler for a signal that nobody else uses, while it exists.
class Handler {
  public:
    Handler() {
        struct sigaction action {};
        action.sa_handler = write_stack;
        action.sa_flags = SA_RESTART;
        sigemptyset(&action.sa_mask);
        sigaction(number(), &action, &former_);
    }
    Handler(Handler const&) = delete;
    Handler& operator=(Handler const&) = delete;
    ~Handler() { sigaction(number(), &former_, nullptr); }
    static int number() { return SIGRTMIN + 3; }

  private:
    struct sigaction former_ {};
};

void write(int file, std::string const& text) {
    if (::write(file, text.data(), text.size()) < 0) {
        // In memory; a stack that is not there is missed, no more.
    }
}

std::string contents(int file) {
    std::string text(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)), '\0');
    auto const bytes = ::pread(file, text.data(), text.size(), 0);
    text.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    return text;
}

} // namespace

std::string stacks_of_other_threads() {
    std::array<void*, 1> first{};
    ::backtrace(first.data(), 1); // loads what it needs, which a handler must not
    Descriptor const memory(::memfd_create("stacks", MFD_CLOEXEC));
    if (!memory.is_open()) {
        return {};
    }
    int const file = memory.get();
    output.store(file);
    {
        Handler const handler;
        for (int const thread : threads_of_this_process()) {
            if (thread == ::gettid()) {
                continue;
            }
            std::string name;
            std::getline(std::ifstream(concat("/proc/self/task/", thread, "/comm")) >> std::ws,
                         name);
            write(file, concat("thread ", thread, " (", name, "):\n"));
            written.store(false);
            ::syscall(SYS_tgkill, ::getpid(), thread, Handler::number());
            for (int wait = 0; wait < 50 && !written.load(); ++wait) {
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
        }
    }
    auto text = contents(file);
    output.store(-1);
    return text;
}

} // namespace lockstep::monitor
