#pragma once

#include "lockstep/config/deck.hpp"

#include <torch/types.h>

namespace lockstep::train {

/// While it exists, torch's operators on this thread compute in the type that precision.compute
/// names, as torch's autocast chooses it for each of them; weights stay float32. It keeps no copies
/// of weights: torch has one store of them for all threads, and empties it when any thread leaves
/// autocast, so that the gradient of a weight that is used twice would be rounded once or twice,
/// depending on timing.
class Autocast {
  public:
    Autocast(config::Precision const& precision, torch::Device device);
    Autocast(Autocast const&) = delete;
    Autocast& operator=(Autocast const&) = delete;
    ~Autocast();

  private:
    torch::DeviceType device_;
    bool active_;
    bool was_enabled_ = false;
    bool cached_before_ = true;
    torch::ScalarType type_before_ = torch::kFloat32;
};

} // namespace lockstep::train
