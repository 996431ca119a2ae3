#pragma once

namespace lockstep {

/// The process that has sent the latest signal that SignalRequests has noted.
[[nodiscard]] int signal_sender() noexcept;

} // namespace lockstep
