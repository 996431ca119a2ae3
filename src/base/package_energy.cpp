#include "base/package_energy.hpp"

#include "base/number.hpp"
#include "base/proc_file.hpp"
#include "base/text.hpp"

#include <system_error>

namespace lockstep {

namespace {

std::optional<double> microjoules_in(std::filesystem::path const& file) {
    auto const text = proc_text(file);
    return number_of<double>(std::string(trimmed(text)));
}

} // namespace

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
