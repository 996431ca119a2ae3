// Pages of the simulated devices that come and go, in place of the part of the program that says
// that it has none.

#include "device/device_pages.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>

#include "torch_sim.hpp"

namespace lockstep::train {

namespace {

class SimPages : public DevicePages {
  public:
    SimPages(torch::Device device, std::size_t bytes) {
        c10::DeviceGuard const guard(device);
        data_ = static_cast<std::byte*>(sim::reserve(bytes));
        TORCH_CHECK(data_ != nullptr, "sim: no more addresses");
    }
    SimPages(SimPages const&) = delete;
    SimPages& operator=(SimPages const&) = delete;
    ~SimPages() override { sim::unreserve(data_); }

    void* data() const noexcept override { return data_; }
    std::size_t page_bytes() const noexcept override { return sim::page_bytes; }
    void populate(std::size_t first, std::size_t last) override {
        TORCH_CHECK_WITH(OutOfMemoryError, sim::populate(at(first), at(last) - at(first)),
                         "sim: out of memory. Tried to allocate ", (at(last) - at(first)) >> 10,
                         " KiB of pages");
    }
    void discard(std::size_t first, std::size_t last) noexcept override {
        sim::discard(at(first), static_cast<std::size_t>(at(last) - at(first)));
    }

  private:
    std::byte* at(std::size_t page) const { return data_ + page * sim::page_bytes; }

    std::byte* data_ = nullptr;
};

} // namespace

bool has_device_pages(torch::Device device) {
    return device.type() == sim::device_type;
}

std::unique_ptr<DevicePages> reserve_device_pages(torch::Device device, std::size_t bytes) {
    return std::make_unique<SimPages>(device, bytes);
}

} // namespace lockstep::train
