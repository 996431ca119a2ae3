#include "launch/ended_ranks.hpp"

#include "base/awake_clock.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::launch {

namespace {

constexpr double gone_within_s = 2;

std::string text_of(int process, char const* name) {
    std::ifstream file(concat("/proc/", process, "/", name));
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A number may be another process's by now.
bool is_of(std::string const& launch, int process) {
    auto const variables = split(text_of(process, "environ"), '\0');
    return std::ranges::count(variables, concat("LOCKSTEP_LAUNCH=", launch)) > 0;
}

/// Open MPI's segments: "/dev/shm/vader_segment.HOST.USER.JOB.RANK".
void add_segments(int process, std::set<std::string>& segments) {
    for (auto const& line : split(text_of(process, "maps"), '\n')) {
        auto const at = line.find("/dev/shm/vader_segment.");
        if (at != std::string::npos && !line.ends_with(" (deleted)")) {
            segments.insert(line.substr(at));
        }
    }
}

} // namespace

std::vector<int> end_ranks(std::vector<int> const& processes, std::string const& launch) {
    std::vector<int> left;
    std::set<std::string> segments;
    for (int const process : processes) {
        if (!launch.empty() && is_of(launch, process)) {
            left.push_back(process);
            add_segments(process, segments);
        }
    }
    for (int const process : left) {
        ::kill(process, SIGKILL);
    }
    for (AwakeClock clock; !left.empty() && clock.seconds() < gone_within_s;) {
        std::erase_if(left, [](int process) { return !process_state(process); });
        ::usleep(5'000);
    }
    for (auto const& segment : segments) {
        ::unlink(segment.c_str());
    }
    return left;
}

/// "ompi.HOST.USER/pid.NUMBER".
void remove_session(int mpirun) {
    std::error_code failure;
    auto const all = std::filesystem::temp_directory_path(failure);
    for (auto const& each : std::filesystem::directory_iterator(all, failure)) {
        auto const session = each.path() / concat("pid.", mpirun);
        struct stat info {};
        if (each.path().filename().string().starts_with("ompi.") &&
            ::lstat(session.c_str(), &info) == 0 && info.st_uid == ::geteuid()) {
            std::filesystem::remove_all(session, failure);
        }
    }
}

} // namespace lockstep::launch
