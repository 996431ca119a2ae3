#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/any.h>

#include <memory>

#include "../batch_norm.hpp"
#include "../sync_batch_norm.hpp"

namespace lockstep::nn {

/// Batch norm over [n, channels, height, width] or, of three dimensions, [n, channels, depth,
/// height, width]; over all replicas where `sync` says so.
inline torch::nn::AnyModule batch_norm(std::int64_t channels, std::size_t dimensions, bool sync,
                                       std::shared_ptr<ReplicaLink> const& link) {
    if (sync) {
        return torch::nn::AnyModule(SyncBatchNorm(channels, link));
    }
    if (dimensions == 3) {
        return torch::nn::AnyModule(
            std::make_shared<BatchNormLayer<torch::nn::BatchNorm3dImpl>>(channels));
    }
    return torch::nn::AnyModule(
        std::make_shared<BatchNormLayer<torch::nn::BatchNorm2dImpl>>(channels));
}

} // namespace lockstep::nn
