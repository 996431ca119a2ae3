#pragma once

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <concepts>
#include <limits>
#include <utility>

namespace lockstep::comm {

/// The most bytes of one call: MPI counts are int, and this stays well below that limit and below 2
/// GiB.
constexpr std::size_t call_bytes = std::size_t{1} << 30;

/// A count for MPI, which takes int: every length that is passed to MPI goes through this function.
///
/// Throws  Error 70 where the value does not fit
template <std::integral T>
[[nodiscard]] int mpi_count(T count) {
    if (!std::in_range<int>(count)) {
        throw Error(ExitCode::software, {concat("cannot send ", count, " elements in one message"),
                                         "MPI counts them as int, and the message was not split",
                                         "This is a bug; please report it"});
    }
    return static_cast<int>(count);
}

/// Calls call(first, length) for the parts of a long array, in order, each of at most `max`.
template <std::integral T, class Call>
void in_parts(T elements, T max, Call const& call) {
    for (T first = 0; first < elements; first += max) {
        call(first, mpi_count(std::min<T>(max, elements - first)));
    }
}

} // namespace lockstep::comm
