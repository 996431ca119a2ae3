#pragma once

namespace lockstep {

/// The process that has sent the latest signal that SignalRequests has noted.
[[nodiscard]] int signal_sender() noexcept;

/// Whether a signal that SignalRequests has noted came from another process than this one's parent.
[[nodiscard]] bool others_have_asked() noexcept;

} // namespace lockstep
