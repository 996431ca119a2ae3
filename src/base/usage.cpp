#include "base/usage.hpp"

#include "base/memory.hpp"
#include "base/number.hpp"
#include "base/proc_file.hpp"
#include "base/text.hpp"

#include <sstream>
#include <sys/resource.h>
#include <system_error>

namespace lockstep {

namespace {

double processor_seconds(timeval const& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

std::optional<double> microjoules_in(std::filesystem::path const& file) {
    auto const text = proc_text(file);
    return number_of<double>(std::string(trimmed(text)));
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

double network_bytes(std::string const& text) {
    double bytes = 0;
    for (auto const& line : split(text, '\n')) {
        auto const colon = line.find(':');
        if (colon == std::string::npos ||
            trimmed(std::string_view(line).substr(0, colon)) == "lo") {
            continue;
        }
        constexpr int sent_at = 8; // after eight numbers on what was received
        std::istringstream numbers(line.substr(colon + 1));
        double value = 0;
        for (int at = 0; at <= sent_at && numbers >> value; ++at) {
            bytes += at == 0 || at == sent_at ? value : 0;
        }
    }
    return bytes;
}

PackageEnergy::PackageEnergy(std::filesystem::path const& root) {
    std::error_code absent;
    for (auto const& entry : std::filesystem::directory_iterator(root, absent)) {
        auto const name = proc_text(entry.path() / "name");
        auto const value = microjoules_in(entry.path() / "energy_uj");
        if (name.starts_with("package") && value) {
            counters_.push_back({entry.path() / "energy_uj",
                                 microjoules_in(entry.path() / "max_energy_range_uj").value_or(0),
                                 *value});
        }
    }
}

std::optional<double> PackageEnergy::joules() {
    if (counters_.empty()) {
        return std::nullopt;
    }
    for (auto& counter : counters_) {
        auto const now = microjoules_in(counter.file).value_or(counter.last);
        microjoules_ += now - counter.last + (now < counter.last ? counter.range : 0);
        counter.last = now;
    }
    return 1e-6 * microjoules_;
}

} // namespace lockstep
