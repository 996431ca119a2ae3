#include "base/pci_gauge.hpp"

#include "base/letter_case.hpp"

#include <fstream>
#include <system_error>

namespace lockstep {

namespace {

std::optional<double> number_in_file(std::filesystem::path const& path) {
    std::ifstream file(path);
    double value = 0;
    file >> value;
    return file ? std::optional(value) : std::nullopt;
}

} // namespace

PciGauge::PciGauge(std::string bus, std::filesystem::path const& devices)
    : bus_(lower_case(std::move(bus))), files_(devices / bus_) {}

std::optional<double> PciGauge::utilization() const {
    return number_in_file(files_ / "gpu_busy_percent");
}

std::optional<double> PciGauge::joules() const {
    std::error_code none;
    std::filesystem::directory_iterator const sensors(files_ / "hwmon", none);
    for (auto const& sensor : sensors) {
        if (auto const microjoules = number_in_file(sensor.path() / "energy1_input")) {
            return 1e-6 * *microjoules;
        }
    }
    return std::nullopt;
}

} // namespace lockstep
