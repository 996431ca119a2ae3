#pragma once

#include "program/graph.hpp"

#include <memory>

namespace lockstep::program {

/// A node's max pool of LibTorch's: `max_pool`, which is faster, with the same bits; its indices
/// are computed only if the node's second result has a slot. Null for all others.
std::shared_ptr<Replacement const> pooled(Node const& node);

} // namespace lockstep::program
