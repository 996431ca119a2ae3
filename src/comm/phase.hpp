#pragma once

#include <string_view>

namespace lockstep::comm {

/// What a rank is doing.
enum class Phase : int {
    start_up,
    train, ///< the parts of a step that are none of the next four
    data,  ///< waits for its next batch
    compute,
    exchange,
    update,
    validation,
    test,
    checkpoint,
    end,
    reporting ///< after the last step: records and pictures
};

/// "forward and backward", and so on.
std::string_view name_of(Phase phase);

} // namespace lockstep::comm
