#pragma once

#include <string>

namespace lockstep::monitor {

/// Why a run ended, for people; records have the signal's name instead.
inline std::string ending_text(std::string const& reason) {
    return reason.starts_with("SIG") || reason.starts_with("signal ") ? "interrupted" : reason;
}

} // namespace lockstep::monitor
