#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <string>

#include "torch_sim.hpp"

namespace lockstep::sim {

namespace {

std::string as_vendors_say(std::size_t bytes, c10::DeviceIndex device) {
    auto const use = memory_use(device);
    auto const mib = [](std::size_t size) { return c10::str(size >> 20, " MiB"); };
    return c10::str("sim: out of memory. Tried to allocate ", mib(bytes), ". GPU ", int{device},
                    " has a total capacity of ", mib(use.all), " of which ",
                    mib(use.all - use.used), " is free. It is simulated.");
}

class OfDevices final : public c10::DeviceAllocator {
  public:
    c10::DataPtr allocate(std::size_t bytes) override {
        c10::Device const device(device_type, static_cast<c10::DeviceIndex>(current_device()));
        if (bytes == 0) {
            return {nullptr, nullptr, &release, device};
        }
        void* const data = sim::allocate(bytes);
        TORCH_CHECK_WITH(OutOfMemoryError, data != nullptr, as_vendors_say(bytes, device.index()));
        return {data, data, &release, device};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void* to, void const* from, std::size_t bytes) const override {
        auto& on = current_stream(current_device());
        if (!has_kernels()) {
            launch(on, "a copy", {}, {});
            return;
        }
        launch(on, "a copy", {{from, bytes, false}, {to, bytes, true}},
               [to = kernel_view(to, bytes), from = kernel_view(from, bytes), bytes] {
                   std::memcpy(to, from, bytes);
               });
    }
    bool initialized() override { return true; }
    void emptyCache(c10::MempoolId_t) override {} // blocks keep their places
    void recordStream(c10::DataPtr const& data, c10::Stream user) override {
        record_stream(data.get(), stream_of(user));
    }
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
        c10::CachingDeviceAllocator::DeviceStats stats;
        auto const use = memory_use(device);
        stats.allocated_bytes[0].current = static_cast<std::int64_t>(use.used);
        stats.allocated_bytes[0].peak = static_cast<std::int64_t>(use.peak);
        stats.reserved_bytes[0].current = static_cast<std::int64_t>(use.reserved);
        return stats;
    }
    void resetAccumulatedStats(c10::DeviceIndex) override {}
    void resetPeakStats(c10::DeviceIndex device) override { reset_peak(device); }
    std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
        auto const use = memory_use(device);
        return {use.all - use.reserved, use.all}; // as vendors: what is kept is not free
    }

  private:
    static void release(void* data) {
        if (data != nullptr) {
            sim::free(data);
        }
    }
};

class Pinned final : public c10::Allocator {
  public:
    c10::DataPtr allocate(std::size_t bytes) override {
        void* const data = bytes == 0 ? nullptr : pin(bytes);
        TORCH_CHECK(bytes == 0 || data != nullptr, "sim: no more pinned memory");
        return {data, data, &release, c10::Device(c10::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void* to, void const* from, std::size_t bytes) const override {
        std::memcpy(to, from, bytes);
    }

  private:
    static void release(void* data) {
        if (data != nullptr) {
            unpin(data);
        }
    }
};

} // namespace

// Never ended: torch frees memory in its own last statements.
c10::Allocator& device_allocator() {
    static auto& made = *new OfDevices;
    return made;
}

c10::Allocator& pinned_allocator() {
    static auto& made = *new Pinned;
    return made;
}

} // namespace lockstep::sim
