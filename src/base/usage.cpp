#include "base/usage.hpp"

#include "base/memory.hpp"
#include "base/proc_file.hpp"

#include <sys/resource.h>

namespace lockstep {

namespace {

double processor_seconds(timeval const& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

} // namespace

Usage process_usage() {
    Usage usage;
    for (auto const who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage used{};
        if (::getrusage(who, &used) == 0) {
            usage.user_s += processor_seconds(used.ru_utime);
            usage.system_s += processor_seconds(used.ru_stime);
        }
    }
    usage.memory_peak = static_cast<double>(peak_memory());
    auto const io = proc_text("/proc/self/io");
    usage.disk_read = static_cast<double>(proc_value(io, "read_bytes").value_or(0));
    usage.disk_written = static_cast<double>(proc_value(io, "write_bytes").value_or(0));
    return usage;
}

} // namespace lockstep
