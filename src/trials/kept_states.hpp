#pragma once

#include "checkpoint/parts_table.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/snapshot.hpp"
#include "comm/request_desk.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::trials {

/// A trial and the step that it has reached.
using StateOf = std::pair<std::int64_t, std::int64_t>;

/// This rank's parts of the states of trials, after they have been trained: trials that continue
/// from them fetch them from memory. One thread may call `keep` while another calls `answer`.
class KeptStates {
  public:
    /// Whether there is room for a copy. Not collective.
    bool has_room(checkpoint::Snapshot const& snapshot, int ranks_of_host) const;

    /// Stores a copy of this rank's parts.
    void keep(StateOf which, checkpoint::Snapshot const& snapshot);

    /// Forgets all states that are not in `needed`.
    void retain(std::set<StateOf> const& needed);

    /// Whether it is a request of `fetch_state`.
    static bool is_asked(std::string const& request);

    /// The answer to a request of `fetch_state`; empty for a state that is not here.
    std::string answer(std::string const& request) const;

  private:
    struct State {
        checkpoint::PartsTable table;
        std::vector<std::byte> block;
    };

    mutable std::mutex mutex_;
    std::map<StateOf, State> states_;
};

/// The state that these ranks of the desk's world keep, as if it were read from a checkpoint; null
/// if one of them no longer has it. `desk` must outlive it.
///
/// Not collective
/// Throws  Error 69
std::shared_ptr<checkpoint::Reader const> fetch_state(comm::RequestDesk& desk, StateOf which,
                                                      std::vector<int> const& holders);

} // namespace lockstep::trials
