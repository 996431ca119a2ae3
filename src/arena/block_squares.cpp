#include "arena/block_squares.hpp"

#include "comm/partition.hpp"

#include <torch/torch.h>

namespace lockstep::train {

torch::Tensor squares_of_blocks(torch::Tensor const& values) {
    // To fewer rows torch's kernel for CUDA gives more threads each (set_block_dimension in
    // Reduce.cuh).
    constexpr std::int64_t min_rows = 16;
    auto const blocks = values.numel() / reduction_block;
    auto squares = values.view({blocks, reduction_block}).to(torch::kFloat64).square();
    if (blocks < min_rows) {
        squares = torch::constant_pad_nd(squares, {0, 0, 0, min_rows - blocks});
    }
    return squares.sum(1).narrow(0, 0, blocks);
}

} // namespace lockstep::train
