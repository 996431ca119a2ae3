#include "base/memory_kills.hpp"

#include "base/proc_file.hpp"
#include "base/text.hpp"

namespace lockstep {

std::uint64_t MemoryKills::count() const {
    return proc_value(proc_text(file), "oom_kill").value_or(0);
}

MemoryKills memory_kills_of(int id) {
    for (auto const& line : split(proc_text(concat("/proc/", id, "/cgroup")), '\n')) {
        auto const parts = split(line, ':');
        if (parts.size() < 3 || !(parts[1].empty() || parts[1] == "memory")) {
            continue;
        }
        auto const& group = parts[2];
        std::filesystem::path const file =
            parts[1].empty() ? concat("/sys/fs/cgroup", group, "/memory.events")
                             : concat("/sys/fs/cgroup/memory", group, "/memory.oom_control");
        if (proc_value(proc_text(file), "oom_kill")) {
            return {concat("the control group ", group), file};
        }
    }
    return {"this host", "/proc/vmstat"};
}

} // namespace lockstep
