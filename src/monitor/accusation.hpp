#pragma once

#include "lockstep/base/error.hpp"

#include <cstdint>

namespace lockstep::monitor {

/// That a host, or its only rank, is lost, as ranks of different hosts tell each other before one
/// of them reports it. Of two accusations the one that knows more counts.
struct Accusation {
    enum class Why : std::int32_t {
        nothing, ///< nobody is accused
        silent,  ///< nothing has been heard of its host
        stopped, ///< the same, but the host's kernel answers
        gone,    ///< its process has ended
        daemon,  ///< the launcher's daemon on its host has ended
        session, ///< the session in which that daemon was started has ended
        alone    ///< its host hears no other host
    };

    Why why = Why::nothing;
    std::int32_t rank = 0; ///< of the lost host
    std::int32_t phase = 0;
    std::int32_t reserved = 0; ///< padding that is sent must not be undefined
    std::int64_t step = 0;
    double silence_s = 0;

    explicit operator bool() const noexcept { return why != Why::nothing; }
    bool counts_before(Accusation const& other) const noexcept {
        return why > other.why || (why == other.why && rank < other.rank);
    }
    ErrorText text() const;
};

} // namespace lockstep::monitor
