#pragma once

#include <ATen/autocast_mode.h>

namespace lockstep::program {

/// torch.autocast on this thread, for the time of a block.
class AutocastScope {
  public:
    AutocastScope(c10::DeviceType device, at::ScalarType type, bool enabled, bool cache)
        : device_(device), enabled_(at::autocast::is_autocast_enabled(device)),
          cache_(at::autocast::is_autocast_cache_enabled()),
          type_(at::autocast::get_autocast_dtype(device)) {
        at::autocast::set_autocast_enabled(device, enabled);
        at::autocast::set_autocast_dtype(device, type);
        at::autocast::increment_nesting();
        at::autocast::set_autocast_cache_enabled(cache);
    }
    ~AutocastScope() {
        if (at::autocast::decrement_nesting() == 0) {
            at::autocast::clear_cache();
        }
        at::autocast::set_autocast_enabled(device_, enabled_);
        at::autocast::set_autocast_dtype(device_, type_);
        at::autocast::set_autocast_cache_enabled(cache_);
    }
    AutocastScope(AutocastScope const&) = delete;
    AutocastScope& operator=(AutocastScope const&) = delete;

  private:
    c10::DeviceType device_;
    bool enabled_;
    bool cache_;
    at::ScalarType type_;
};

} // namespace lockstep::program
