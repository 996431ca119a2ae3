#include "base/device_gauge.hpp"

#include <cstdlib>

#include "catch.hpp"

using namespace lockstep;

namespace {

/// The utilization of a device of tests/support/fake_nvml.cpp: the n-th is busy 10 n per cent.
std::optional<double> busy(char const* device, char const* visible, char const* ours) {
    visible == nullptr ? ::unsetenv("CUDA_VISIBLE_DEVICES")
                       : ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    ours == nullptr ? ::unsetenv("LOCKSTEP_FAKE_NVML") : ::setenv("LOCKSTEP_FAKE_NVML", ours, 1);
    DeviceGauge gauge;
    gauge.look_at(device);
    return gauge.utilization();
}

} // namespace

TEST_CASE("a GPU is found by who computes on it, else by what is visible") {
    CHECK(busy("cuda:1", nullptr, nullptr) == 10);
    CHECK(busy("cuda:0", "2,1", nullptr) == 20);
    CHECK(busy("cuda:0", "GPU-two", nullptr) == 20);
    CHECK(busy("cuda:0", nullptr, "1") == 10);
}

TEST_CASE("a GPU tells its energy and what tells it from others") {
    ::setenv("CUDA_VISIBLE_DEVICES", "GPU-two", 1);
    ::unsetenv("LOCKSTEP_FAKE_NVML");
    DeviceGauge gauge;
    CHECK_FALSE(gauge.joules());
    CHECK(gauge.uuid().empty());
    gauge.look_at("cuda:0");
    CHECK(gauge.joules() == 10);
    CHECK(gauge.uuid() == "GPU-two");
}

TEST_CASE("what is no GPU here has no gauge") {
    CHECK_FALSE(busy("cpu", nullptr, nullptr));
    CHECK_FALSE(busy("cuda:7", nullptr, nullptr));
    CHECK_FALSE(busy("cuda:1", "0", nullptr));
    CHECK_FALSE(busy("cuda:x", nullptr, nullptr));
    CHECK_FALSE(busy("cuda:0", "GPU-none", nullptr));
    CHECK_FALSE(DeviceGauge().utilization());
}
