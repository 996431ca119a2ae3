#pragma once

#include "lockstep/config/deck.hpp"

#include <c10/core/StreamGuard.h>

#include <optional>

namespace lockstep::train {

/// The stream of all work that this thread starts on the device while it exists, where passes may
/// be recorded as graphs: the device's default stream cannot be recorded. Elsewhere it does
/// nothing.
class GraphStream {
  public:
    GraphStream(config::Deck const& deck, int ranks, c10::Device device);

  private:
    std::optional<c10::StreamGuard> stream_;
};

} // namespace lockstep::train
