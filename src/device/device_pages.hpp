#pragma once

#include <torch/types.h>

#include <cstddef>
#include <memory>

namespace lockstep::train {

/// Addresses on a device whose pages come and go, so that whatever refers to them stays as it is.
class DevicePages {
  public:
    virtual ~DevicePages() = default;

    virtual void* data() const noexcept = 0; ///< on a page
    virtual std::size_t page_bytes() const noexcept = 0;

    /// Gives pages [first, last), which have no memory, some of any contents.
    ///
    /// Throws  c10::OutOfMemoryError, as LibTorch's allocator does
    virtual void populate(std::size_t first, std::size_t last) = 0;
    /// Takes the memory of these pages away. No work under way uses them, and the host has waited
    /// for what did.
    virtual void discard(std::size_t first, std::size_t last) noexcept = 0;
};

/// Whether this program can take memory away on devices of this kind.
bool has_device_pages(torch::Device device);

/// Reserves addresses on such a device, without memory.
std::unique_ptr<DevicePages> reserve_device_pages(torch::Device device, std::size_t bytes);

} // namespace lockstep::train
