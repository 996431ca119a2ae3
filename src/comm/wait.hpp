#pragma once

#include <string_view>

namespace lockstep::comm {

/// The call in which a rank waits for the other ranks.
enum class Wait : int {
    nothing,
    barrier,
    all_reduce,
    broadcast,
    all_gather,
    exchange,
    communicator,
    file,
    message,
    finalize
};

/// "an all-reduce", and so on.
std::string_view name_of(Wait wait);

} // namespace lockstep::comm
