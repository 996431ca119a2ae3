#include "graph_stream.hpp"

#include "train/graph_rule.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace lockstep::train {

GraphStream::GraphStream(config::Deck const& deck, int ranks, c10::Device device) {
    if (uses_graphs({.deck = deck, .ranks = ranks, .device = device})) {
        stream_.emplace(c10::impl::VirtualGuardImpl(device.type())
                            .getStreamFromGlobalPool(device, /*isHighPriority=*/false));
    }
}

} // namespace lockstep::train
