#include "heap.hpp"

#include "base/large_blocks.hpp"
#include "base/memory.hpp"

namespace lockstep::train {

void settle_heap(config::Deck const& deck) {
    auto const& update = deck.optimizer.update;
    bool const comes_and_goes = update == "fully-sharded" || update == "sharded-gradients";
    if (deck.precision.gradient_checkpointing || comes_and_goes) {
        return_large_blocks();
    } else {
        keep_large_blocks();
    }
}

} // namespace lockstep::train
