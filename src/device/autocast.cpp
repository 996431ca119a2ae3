#include "device/autocast.hpp"

#include <ATen/autocast_mode.h>

namespace lockstep::train {

Autocast::Autocast(config::Precision const& precision, torch::Device device)
    : device_(device.type()), active_(precision.compute != "fp32") {
    if (!active_) {
        return;
    }
    was_enabled_ = at::autocast::is_autocast_enabled(device_);
    type_before_ = at::autocast::get_autocast_dtype(device_);
    cached_before_ = at::autocast::is_autocast_cache_enabled();
    at::autocast::set_autocast_cache_enabled(false);
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, precision.compute == "bf16" ? torch::kBFloat16
                                                                          : torch::kFloat16);
}

Autocast::~Autocast() {
    if (!active_) {
        return;
    }
    at::autocast::set_autocast_cache_enabled(cached_before_);
    at::autocast::set_autocast_dtype(device_, type_before_);
    at::autocast::set_autocast_enabled(device_, was_enabled_);
}

} // namespace lockstep::train
