#include "base/host_facts.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <unistd.h>

namespace lockstep {

std::string own_host() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

bool is_same_host(std::string_view one, std::string_view other) {
    auto const [shorter, longer] =
        std::minmax(one, other, [](auto const& a, auto const& b) { return a.size() < b.size(); });
    return longer.starts_with(shorter) &&
           (longer.size() == shorter.size() || (!shorter.empty() && longer[shorter.size()] == '.'));
}

std::vector<int> allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
        for (int core = 0; core < CPU_SETSIZE; ++core) {
            if (CPU_ISSET(core, &set)) {
                cores.push_back(core);
            }
        }
    }
    return cores;
}

int host_cores() {
    return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

double granted_cores() {
    auto const all = static_cast<double>(host_cores());
    std::ifstream groups("/proc/self/cgroup");
    std::string line;
    double granted = all;
    while (std::getline(groups, line)) {
        auto const parts = split(line, ':');
        if (parts.size() < 3 || !parts[1].empty()) {
            continue;
        }
        for (auto const& group : {parts[2], std::string()}) { // of its own, and seen from inside
            std::ifstream file(concat("/sys/fs/cgroup", group, "/cpu.max"));
            std::string quota;
            double period = 0;
            if (file >> quota >> period && quota != "max" && period > 0) {
                granted = std::min(granted, std::stod(quota) / period);
            }
        }
    }
    return granted;
}

int usable_cores() {
    return std::min(static_cast<int>(allowed_cores().size()),
                    static_cast<int>(std::ceil(granted_cores())));
}

int numa_nodes(std::filesystem::path const& listed) {
    int nodes = 0;
    std::error_code none; // a kernel without NUMA
    for (auto const& entry : std::filesystem::directory_iterator(listed, none)) {
        auto const name = entry.path().filename().string();
        nodes += name.starts_with("node") && name.size() > 4 &&
                 name.find_first_not_of("0123456789", 4) == std::string::npos;
    }
    return nodes;
}

std::string processor_text() {
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    std::string name = "processor not known";
    while (std::getline(file, line)) {
        if (line.starts_with("model name")) {
            name = trimmed(line.substr(line.find(':') + 1));
            break;
        }
    }
    auto const nodes = numa_nodes();
    return concat(name, ", ",
                  nodes <= 1 ? std::string("1 NUMA node") : concat(nodes, " NUMA nodes"));
}

} // namespace lockstep
