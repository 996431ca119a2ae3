#pragma once

#include "lockstep/nn/model.hpp"

#include <torch/nn/modules/container/sequential.h>

#include <functional>

namespace lockstep::nn {

/// A part of a network that can be run again.
struct Block {
    std::function<torch::Tensor(torch::Tensor)> forward;
    std::vector<torch::Tensor> parameters; ///< of its modules
    std::vector<torch::Tensor> buffers;
    std::shared_ptr<RandomKey> random_key; ///< from which its layers draw; may be null
};

/// Runs a block without keeping its inner activations, and runs it again in backward, with the same
/// random key and autocast state and without a second update of running statistics: less memory for
/// about a third more time (gradient checkpointing: Chen et al., arXiv 1604.06174). The result has
/// the same bits as a plain forward and backward. LibTorch has this for Python only.
///
/// Shape       as the block's
/// Collective  where the block's layers sum over replicas: they do so again in backward
/// Throws      what the block throws, in forward or in backward
torch::Tensor recomputed(Block block, torch::Tensor input);

/// The modules [first, last) of a sequence as a block; `first` is at most `last`, and `last` at
/// most the sequence's size, which is not checked.
Block block_of(torch::nn::Sequential const& sequence, std::size_t first, std::size_t last,
               std::shared_ptr<RandomKey> random_key);

/// Runs a whole sequence, cut before the modules whose indices are in `cuts` (in ascending order),
/// each part as a recomputed block.
///
/// Shape       as the sequence's; `cuts` lie below its size
/// Collective  as `recomputed`
/// Throws      as `recomputed`
torch::Tensor forward_recomputed(torch::nn::Sequential const& sequence,
                                 std::vector<std::size_t> const& cuts,
                                 std::shared_ptr<RandomKey> const& random_key, torch::Tensor input);

} // namespace lockstep::nn
