#pragma once

#include "h5/file.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// One flat array over all ranks, such as "state/parameters".
struct Array {
    std::string name;
    h5::Type type = h5::Type::f32;
    std::uint64_t elements = 0;
};

using h5::Part;

/// The small values beside the arrays. A name occurs in `integers` or in `reals`, not in both.
struct Record {
    std::map<std::string, std::int64_t> integers; ///< step, epoch, cursor, seed …: state
    std::map<std::string, double> reals;      ///< best_metric, loss_scale …: state, bit by bit
    std::string history;                      ///< metric history, JSON lines: state
    std::string deck;                         ///< the resolved deck: not state
    std::map<std::string, std::string> notes; ///< time, hosts, attempt, ranks …: not state

    friend bool operator==(Record const&, Record const&) = default;
};

/// What goes into one checkpoint. Owns the small things only: the memory behind `parts` must stay
/// as it is until the write has returned.
struct Snapshot {
    std::vector<Array> arrays;            ///< the same on all ranks
    std::vector<h5::View> views;          ///< the same on all ranks; `source` names an array
    std::vector<std::vector<Part>> parts; ///< for each array; those of all ranks tile it
    Record record;                        ///< rank 0's is written
};

} // namespace lockstep::checkpoint
