#pragma once

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <source_location>

namespace lockstep {

/// What a function asks of its callers inside the program, checked in every build: sizes, order and
/// state at the borders of rooms. What users may get wrong is an Error of its own instead.
///
/// Throws  Error 70 with `rule` and the place, unless it holds
inline void expects(bool holds, char const* rule,
                    std::source_location at = std::source_location::current()) {
    if (!holds) {
        throw Error(ExitCode::software, {concat("broken in the program: ", rule),
                                         concat("required by ", at.file_name(), ":", at.line()),
                                         "This is a bug; please report it"});
    }
}

} // namespace lockstep
