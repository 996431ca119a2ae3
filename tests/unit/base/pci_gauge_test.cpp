#include "base/pci_gauge.hpp"

#include <fstream>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

TEST_CASE("a device's use and energy are what the kernel's driver tells") {
    test::ScratchDir const scratch;
    auto const device = scratch.path() / "0000:c1:00.0";
    std::filesystem::create_directories(device / "hwmon" / "hwmon7");
    PciGauge const gauge("0000:C1:00.0", scratch.path());
    CHECK_FALSE(gauge.utilization());
    CHECK_FALSE(gauge.joules());
    std::ofstream(device / "gpu_busy_percent") << "37\n";
    std::ofstream(device / "hwmon/hwmon7/energy1_input") << "2500000\n";
    CHECK(gauge.utilization() == 37);
    CHECK(gauge.joules() == 2.5);
    CHECK_FALSE(PciGauge("0000:c2:00.0", scratch.path()).joules());
}
