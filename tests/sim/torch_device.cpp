// Devices, streams and events of torch's backend "sim", and its registration.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "torch_sim.hpp"

namespace lockstep::sim {

namespace {

int index_of(c10::Device device) {
    return device.has_index() ? device.index() : current_device();
}

Mark& mark_of(void* event) {
    return *static_cast<Mark*>(event);
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
  public:
    c10::DeviceType type() const override { return device_type; }
    c10::Device exchangeDevice(c10::Device device) const override {
        auto const before = getDevice();
        setDevice(device);
        return before;
    }
    c10::Device getDevice() const override {
        return {device_type, static_cast<c10::DeviceIndex>(current_device())};
    }
    void setDevice(c10::Device device) const override { set_current_device(index_of(device)); }
    void uncheckedSetDevice(c10::Device device) const noexcept override { setDevice(device); }
    c10::Stream getStream(c10::Device device) const override {
        return as_torch(current_stream(index_of(device)));
    }
    c10::Stream getDefaultStream(c10::Device device) const override {
        return as_torch(stream(index_of(device), 0));
    }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
        return as_torch(new_stream(index_of(device)));
    }
    c10::Stream getNewStream(c10::Device device, int) const override {
        return as_torch(new_stream(index_of(device)));
    }
    c10::Stream exchangeStream(c10::Stream stream) const override {
        auto const before = getStream(stream.device());
        set_current_stream(stream_of(stream));
        return before;
    }
    void* getStreamNativeHandle(c10::Stream stream) const override { return &stream_of(stream); }
    void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
        delete static_cast<Mark*>(event);
    }
    void record(void** event, c10::Stream const& stream, c10::DeviceIndex,
                c10::EventFlag) const override {
        auto mark = sim::record(stream_of(stream));
        if (*event == nullptr) {
            *event = new Mark(std::move(mark));
        } else {
            mark_of(*event) = std::move(mark);
        }
    }
    void block(void* event, c10::Stream const& stream) const override {
        if (event != nullptr) {
            wait(stream_of(stream), mark_of(event));
        }
    }
    bool queryEvent(void* event) const override {
        return event == nullptr || is_done(mark_of(event));
    }
    void synchronizeEvent(void* event) const override {
        if (event != nullptr) {
            synchronize(mark_of(event));
        }
    }
    double elapsedTime(void* first, void* last, c10::DeviceIndex) const override {
        return 1e3 * (time_of(mark_of(last)) - time_of(mark_of(first)));
    }
    c10::DeviceIndex deviceCount() const noexcept override {
        return static_cast<c10::DeviceIndex>(device_count());
    }
    bool queryStream(c10::Stream const& stream) const override {
        return is_idle(stream_of(stream));
    }
    void synchronizeStream(c10::Stream const& stream) const override {
        synchronize(stream_of(stream));
    }
    void synchronizeDevice(c10::DeviceIndex device) const override { synchronize_device(device); }
    void recordDataPtrOnStream(c10::DataPtr const& data, c10::Stream const& user) const override {
        record_stream(data.get(), stream_of(user));
    }
};

class Hooks final : public at::PrivateUse1HooksInterface {
  public:
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return device_count() > 0; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override {
        return static_cast<c10::DeviceIndex>(device_count());
    }
    void setCurrentDevice(c10::DeviceIndex device) const override { set_current_device(device); }
    c10::DeviceIndex getCurrentDevice() const override {
        return static_cast<c10::DeviceIndex>(current_device());
    }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
        auto const before = getCurrentDevice();
        if (device >= 0) {
            set_current_device(device);
        }
        return before;
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
        return exchangeDevice(device);
    }
    bool isPinnedPtr(void const* data) const override { return is_pinned(data); }
    at::Allocator* getPinnedMemoryAllocator() const override { return &pinned_allocator(); }
    at::Device getDeviceFromPtr(void* data) const override {
        return {device_type, static_cast<c10::DeviceIndex>(device_of(data))};
    }
    at::Generator const& getDefaultGenerator(c10::DeviceIndex) const override { return generator_; }
    at::Generator getNewGenerator(c10::DeviceIndex) const override {
        return at::detail::createCPUGenerator();
    }

  private:
    at::Generator generator_ = at::detail::createCPUGenerator();
};

c10::impl::DeviceGuardImplRegistrar const guard(device_type, new Guard);
[[maybe_unused]] bool const registered = [] {
    c10::register_privateuse1_backend("sim");
    c10::SetAllocator(device_type, &device_allocator(), 1);
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    return true;
}();

} // namespace

} // namespace lockstep::sim
