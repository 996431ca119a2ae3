#pragma once

#include "arena/layout.hpp"
#include "device/device_pages.hpp"

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep::train {

/// A flat float32 array on a device, of which only what is needed has memory. A page has memory as
/// long as anything on it is needed.
class SparseArray {
  public:
    /// `device` has pages that come and go.
    SparseArray(torch::Device device, std::int64_t size);

    torch::Tensor const& values() const noexcept { return values_; } ///< [size]

    /// Gives these elements memory, once more where they have some. What they hold is undefined
    /// until it is written.
    ///
    /// Throws  c10::OutOfMemoryError
    void populate(Range range);
    /// The opposite of one call of `populate` for the same range. The host has waited for what used
    /// it.
    void discard(Range range) noexcept;

  private:
    struct Pages {
        std::size_t first = 0;
        std::size_t last = 0;
    };
    Pages pages_of(Range range) const;
    /// Calls action(first, last) for pages next to each other that nothing uses.
    template <class Action>
    void for_unused(Pages pages, Action const& action) const;

    std::unique_ptr<DevicePages> pages_;
    std::vector<int> uses_; ///< by page
    torch::Tensor values_;
};

} // namespace lockstep::train
