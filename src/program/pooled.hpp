#pragma once

#include "program/graph.hpp"

#include <memory>

namespace lockstep::program {

/// A max pool of LibTorch's: `max_pool`, which is faster, with the same bits. Null for all others.
std::shared_ptr<Replacement const> pooled(c10::OperatorHandle const& op);

} // namespace lockstep::program
