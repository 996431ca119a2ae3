#include "launch/host_test.hpp"

#include "base/awake_clock.hpp"
#include "base/child.hpp"
#include "base/descriptor.hpp"
#include "base/file.hpp"
#include "base/gpus.hpp"
#include "base/hash.hpp"
#include "base/host_facts.hpp"
#include "base/memory.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <span>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "road.hpp"

namespace lockstep::launch {

namespace {

using Kind = HostFinding::Kind;

constexpr double part_limit_s = 4;
constexpr int connect_ms = 1500;
constexpr std::uint64_t min_memory = std::uint64_t{128} << 20;
constexpr std::size_t tested_memory = std::size_t{32} << 20;
constexpr std::size_t tested_disk = std::size_t{1} << 20;
constexpr char const* known_bits = "13ea8f744ccc35fe";

/// Empty: nothing is found. "!…": wrong bits; "~…": what makes no host worse than others.
using Part = std::function<std::string()>;

std::string wrong(std::string const& text) {
    return "!" + text;
}

std::string memory() {
    auto const left = available_memory();
    if (left < min_memory) {
        return concat("only ", left >> 20, " MiB are free");
    }
    std::vector<std::uint64_t> words(tested_memory / sizeof(std::uint64_t));
    for (std::uint64_t const pattern : {0x5555555555555555U, 0xaaaaaaaaaaaaaaaaU}) {
        for (std::size_t i = 0; i < words.size(); ++i) {
            static_cast<std::uint64_t volatile&>(words[i]) = pattern ^ i;
        }
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (static_cast<std::uint64_t volatile&>(words[i]) != (pattern ^ i)) {
                return wrong("it does not keep what is written to it");
            }
        }
    }
    return "";
}

std::string disk(std::filesystem::path const& directory) {
    auto const path = directory / concat("probe-", new_token());
    std::string text(tested_disk, 'x');
    std::string found;
    try {
        auto const file = File::create_new(path);
        file.append_text(text);
        file.sync();
        found = read_text(path) == text ? "" : wrong(concat(path.string(), " reads otherwise"));
    } catch (Error const& error) {
        found = concat(tells_disk(error.what()) ? "~" : "", error.what());
    }
    ::unlink(path.c_str());
    return found;
}

std::string devices() {
    return list_gpus().problem;
}

std::uint64_t bits_here() {
    std::array<double, 64> values{};
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = 1.0 / static_cast<double>(i + 3);
    }
    for (int turn = 0; turn < 4000; ++turn) { // a chaotic map: a wrong bit grows
        for (std::size_t i = 0; i < values.size(); ++i) {
            auto const other = values[(i + 17) % values.size()];
            auto const x = 3.999 * values[i] * (1.0 - values[i]);
            values[i] = std::sqrt(x * (0.75 + 0.25 * other) / (1.0 + 1e-3 * other));
            values[i] = values[i] < 0.999 ? values[i] : 0.5;
        }
    }
    return hash64(std::as_bytes(std::span(values)));
}

/// On each core that this process may use.
std::string computation() {
    auto const cores = allowed_cores();
    std::vector<std::uint64_t> bits(cores.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < cores.size(); ++i) {
        threads.emplace_back([&, i] {
            cpu_set_t* const set = CPU_ALLOC(static_cast<std::size_t>(cores[i]) + 1);
            auto const bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cores[i]) + 1);
            CPU_ZERO_S(bytes, set);
            CPU_SET_S(static_cast<std::size_t>(cores[i]), bytes, set);
            ::sched_setaffinity(0, bytes, set);
            CPU_FREE(set);
            bits[i] = bits_here();
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (std::size_t i = 0; i < cores.size(); ++i) {
        if (hex(bits[i]) != known_bits) {
            return wrong(
                concat("core ", cores[i], " computes ", hex(bits[i]), " instead of ", known_bits));
        }
    }
    return "";
}

/// A connection is accepted or refused by a host that is there.
bool reaches(std::string const& host) {
    addrinfo* found = nullptr;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(host.c_str(), "9", &hints, &found) != 0) {
        return true; // a name that only the launcher's agent knows says nothing of the network
    }
    bool there = false;
    for (auto const* each = found; each != nullptr && !there; each = each->ai_next) {
        Descriptor const call(::socket(each->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0));
        int code = ::connect(call.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
        pollfd ready{.fd = call.get(), .events = POLLOUT, .revents = 0};
        if (code == EINPROGRESS && ::poll(&ready, 1, connect_ms) == 1) {
            socklen_t length = sizeof code;
            ::getsockopt(call.get(), SOL_SOCKET, SO_ERROR, &code, &length);
        }
        there = code == 0 || code == ECONNREFUSED;
    }
    ::freeaddrinfo(found);
    return there;
}

std::string network(std::vector<std::string> const& peers) {
    std::vector<std::string> missed;
    std::ranges::copy_if(peers, std::back_inserter(missed),
                         [](std::string const& peer) { return !reaches(peer); });
    if (missed.empty()) {
        return "";
    }
    // One of them may be the reason; two are not.
    return concat(missed.size() < 2 ? "~" : "", "it does not reach ", joined(missed, " and "));
}

/// In a process of its own, which may hang in a disk or a driver.
class Tried {
  public:
    /// `may_hang`: what gives no answer is bad; else it may only be busy.
    Tried(char const* name, bool may_hang, Part const& part) : name_(name), may_hang_(may_hang) {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
            return;
        }
        answer_ = Descriptor(ends[0]);
        child_ = ::fork();
        if (child_ == 0) {
            for (int const each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
                ::close(each); // who waits for our words does not wait for this process
            }
            auto const text = concat(part(), ".");
            static_cast<void>(!::write(ends[1], text.data(), text.size()));
            ::_exit(0);
        }
        ::close(ends[1]);
    }

    /// Nothing where nothing is found.
    std::optional<HostFinding> finding(AwakeClock& clock) {
        std::string text;
        std::array<char, 4096> part{};
        ssize_t got = 1;
        while (child_ > 0 && got > 0) {
            pollfd ready{.fd = answer_.get(), .events = POLLIN, .revents = 0};
            auto const left_s = part_limit_s - clock.seconds();
            if (left_s <= 0 || ::poll(&ready, 1, static_cast<int>(1e3 * left_s) + 1) <= 0) {
                ::kill(child_, SIGKILL);
                return HostFinding{
                    may_hang_ ? Kind::unfit : Kind::told,
                    concat(name_, ": no answer within ", duration_text(part_limit_s))};
            }
            got = ::read(answer_.get(), part.data(), part.size());
            text.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        }
        if (child_ > 0) {
            ::waitpid(child_, nullptr, 0);
        }
        if (text.empty() || text == ".") { // empty: it could not be tried, or was killed
            return std::nullopt;
        }
        text.pop_back();
        auto const kind = text[0] == '!' ? Kind::wrong : text[0] == '~' ? Kind::told : Kind::unfit;
        std::ranges::replace(text, '\n', ' ');
        return HostFinding{kind, concat(name_, ": ", text.substr(kind == Kind::unfit ? 0 : 1))};
    }

  private:
    char const* name_;
    bool may_hang_;
    Descriptor answer_;
    pid_t child_ = -1;
};

} // namespace

char const* name_of(HostFinding::Kind kind) {
    return kind == Kind::wrong ? "wrong" : kind == Kind::unfit ? "unfit" : "note";
}

std::string computed_bits() {
    return hex(bits_here());
}

std::vector<HostFinding> test_host(std::filesystem::path const& directory,
                                   std::vector<std::string> const& peers) {
    std::vector<Tried> parts;
    parts.reserve(5);
    parts.emplace_back("memory", false, memory);
    parts.emplace_back("disk", true, [&] { return directory.empty() ? "" : disk(directory); });
    parts.emplace_back("device", true, devices);
    parts.emplace_back("computation", false, computation);
    parts.emplace_back("network", false, [&] { return network(peers); });
    std::vector<HostFinding> found;
    AwakeClock clock;
    for (auto& part : parts) {
        if (auto finding = part.finding(clock)) {
            found.push_back(std::move(*finding));
        }
    }
    return found;
}

} // namespace lockstep::launch
