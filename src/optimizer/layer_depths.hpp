#pragma once

#include "arena/layout.hpp"

#include <vector>

namespace lockstep::train {

/// How deep each entry of a layout lies in a model of blocks.
struct LayerDepths {
    std::vector<int> of_entry; ///< 0: before the blocks; then the number of the block, from 1
    int last = 0;              ///< after all blocks: their number plus 1
};

/// By the names of the blocks: "blocks.block2", as built-in transformers have them, or a number
/// after "blocks", "layers", "layer" or "h", as models of timm and of the transformers package do.
///
/// Throws  Error 64 when no name has such a number
LayerDepths layer_depths(Layout const& layout);

} // namespace lockstep::train
