#pragma once

#include "comm/exchange.hpp"

#include <torch/types.h>

#include <memory>

namespace lockstep::train {

/// What a device holds only in shards, beside those buckets that are in use.
struct StagedShards {
    bool gradients = false;
    bool parameters = false;
};

/// Arenas on `device`, copied to and from the host memory of another exchange.
std::unique_ptr<comm::Exchange> staged_exchange(std::unique_ptr<comm::Exchange> host,
                                                torch::Device device, StagedShards shards);

} // namespace lockstep::train
