#pragma once

#include <cstdlib>
#include <string_view>

namespace lockstep::test {

/// Whether all cases are tried (LOCKSTEP_LONG=1, in unit.room.name.long), instead of a few.
inline bool is_long() {
    auto const* const form = std::getenv("LOCKSTEP_LONG");
    return form != nullptr && std::string_view(form) == "1";
}

} // namespace lockstep::test
