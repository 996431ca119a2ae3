#include "base/process.hpp"

#include "base/text.hpp"

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>
#include <vector>

namespace lockstep {

namespace {

/// Empty when it cannot be read: files of /proc come and go.
std::string text_of(std::filesystem::path const& path) {
    std::ostringstream text;
    // Not by iterators, from which a process that ends meanwhile would come as an exception.
    text << std::ifstream(path).rdbuf();
    return text.str();
}

/// The number behind `name` in lines of "name number" or "name: number".
std::optional<std::uint64_t> value_of(std::string const& text, std::string const& name) {
    for (auto const& line : split(text, '\n')) {
        if (line.starts_with(name) && line.size() > name.size() + 1 &&
            (line[name.size()] == ' ' || line[name.size()] == ':')) {
            auto const digits = line.find_first_of("0123456789", name.size());
            std::uint64_t value = 0;
            if (digits != std::string::npos) {
                std::from_chars(line.data() + digits, line.data() + line.size(), value);
            }
            return value;
        }
    }
    return std::nullopt;
}

double seconds_of(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace

std::optional<ProcessState> process_state(int id) {
    auto const text = text_of(concat("/proc/", id, "/stat"));
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
    constexpr std::size_t start_field = 19; // the 22nd of proc(5), the state being the third
    if (filled.size() <= start_field || filled[0] == "Z" || filled[0] == "X") {
        return std::nullopt;
    }
    return ProcessState{filled[0][0], std::stoull(filled[start_field])};
}

std::optional<std::uint64_t> bytes_moved_by_other_threads() {
    std::uint64_t sum = 0;
    auto const own = std::to_string(::gettid());
    std::error_code error;
    for (auto const& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
        if (thread.path().filename() == own) {
            continue;
        }
        auto const text = text_of(thread.path() / "io");
        auto const read = value_of(text, "rchar");
        auto const written = value_of(text, "wchar");
        if (read && written) {
            sum += *read + *written;
        } else if (std::filesystem::exists(thread.path(), error)) {
            return std::nullopt;
        }
    }
    return sum;
}

double processor_seconds_of_other_threads() {
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

std::uint64_t MemoryKills::count() const {
    return value_of(text_of(file), "oom_kill").value_or(0);
}

MemoryKills memory_kills_of(int id) {
    for (auto const& line : split(text_of(concat("/proc/", id, "/cgroup")), '\n')) {
        auto const parts = split(line, ':');
        if (parts.size() < 3 || !(parts[1].empty() || parts[1] == "memory")) {
            continue;
        }
        auto const& group = parts[2];
        std::filesystem::path const file =
            parts[1].empty() ? concat("/sys/fs/cgroup", group, "/memory.events")
                             : concat("/sys/fs/cgroup/memory", group, "/memory.oom_control");
        if (value_of(text_of(file), "oom_kill")) {
            return {concat("the control group ", group), file};
        }
    }
    return {"this host", "/proc/vmstat"};
}

} // namespace lockstep
