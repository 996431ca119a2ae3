#pragma once

#include <string>

namespace lockstep::monitor {

/// Why a run ended, for people: records tell the signal's name.
inline std::string ending_text(std::string const& reason) {
    return reason.starts_with("SIG") || reason.starts_with("signal ") ? "interrupted" : reason;
}

} // namespace lockstep::monitor
