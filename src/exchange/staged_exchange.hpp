#pragma once

#include "comm/exchange.hpp"

#include <torch/types.h>

#include <memory>

namespace lockstep::train {

/// Arenas on `device`, copied to and from the host memory of another exchange.
std::unique_ptr<comm::Exchange> staged_exchange(std::unique_ptr<comm::Exchange> host,
                                                torch::Device device);

} // namespace lockstep::train
