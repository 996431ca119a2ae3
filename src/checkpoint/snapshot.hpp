#pragma once

#include "checkpoint/layout.hpp"
#include "checkpoint/record.hpp"
#include "h5/dataset.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

using h5::Part;

/// What goes into one checkpoint. It owns only the small things: the memory behind `parts` must
/// stay as it is until the write has returned.
struct Snapshot {
    std::vector<Array> arrays;            ///< the same on all ranks
    std::vector<h5::View> views;          ///< the same on all ranks; `source` names an array
    std::vector<std::vector<Part>> parts; ///< for each array; those of all ranks tile it
    Record record;                        ///< rank 0's is written
};

} // namespace lockstep::checkpoint
