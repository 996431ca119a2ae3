#include "base/network_bytes.hpp"
#include "base/package_energy.hpp"
#include "base/usage.hpp"

#include <fstream>
#include <sys/resource.h>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

void write(std::filesystem::path const& file, std::string const& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
}

} // namespace

TEST_CASE("a process's time is the kernel's") {
    auto const before = process_usage();
    double sum = 1;
    while (process_usage().user_s - before.user_s < 0.05) {
        sum += 1 / sum;
    }
    rusage kernel{};
    ::getrusage(RUSAGE_SELF, &kernel);
    auto const after = process_usage();
    CHECK(sum > 1);
    CHECK(after.user_s - static_cast<double>(kernel.ru_utime.tv_sec) -
              1e-6 * static_cast<double>(kernel.ru_utime.tv_usec) <
          0.05);
    CHECK(after.memory_peak > 1e6);
}

TEST_CASE("network bytes are those of all interfaces but the loopback") {
    CHECK(network_bytes("Inter-|   Receive                    |  Transmit\n"
                        " face |bytes packets errs drop fifo frame compressed multicast|bytes\n"
                        "    lo: 1000 1 0 0 0 0 0 0 1000 1 0 0 0 0 0 0\n"
                        "  eth0: 20 1 0 0 0 0 0 0 300 1 0 0 0 0 0 0\n"
                        "  eth1:4000 1 0 0 0 0 0 0 50000 1 0 0 0 0 0 0\n") == 54320);
    CHECK(network_bytes("") == 0);
    CHECK(network_bytes("eth0: no numbers") == 0);
}

TEST_CASE("energy of all packages, over the end of their counters") {
    test::ScratchDir const scratch;
    auto const root = scratch.path();
    for (char const* const package : {"intel-rapl:0", "intel-rapl:1"}) {
        write(root / package / "name", std::string("package-") + std::string(package).back());
        write(root / package / "max_energy_range_uj", "10000000");
        write(root / package / "energy_uj", "9000000");
    }
    write(root / "intel-rapl:0:0" / "name", "core"); // a part of a package
    write(root / "intel-rapl:0:0" / "energy_uj", "5");
    PackageEnergy energy(root);
    CHECK(energy.joules() == 0);
    write(root / "intel-rapl:0" / "energy_uj", "9500000");
    write(root / "intel-rapl:1" / "energy_uj", "1000000"); // started over
    CHECK(*energy.joules() == Approx(2.5));
    CHECK_FALSE(PackageEnergy(root / "nowhere").joules());
}
