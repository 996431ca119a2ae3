#pragma once

#include "comm/request_desk.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lockstep::sites {

/// The ranks of a job in groups that do other work at the same time. A group that cannot continue
/// asks the others to leave theirs, and all ranks end with the same error.
class SiteGroups {
  public:
    /// Divides the ranks as evenly as possible; those of a group are next to each other.
    ///
    /// Collective  over `world`; 1 to `world.size()` groups
    /// Throws      AgreedError 69 where there are several groups and MPI does not provide
    ///             MPI_THREAD_MULTIPLE
    SiteGroups(comm::Communicator const& world, std::int64_t groups);

    std::size_t count() const noexcept { return count_; }
    std::size_t number() const noexcept { return number_; }             ///< of this rank's group
    comm::Communicator const& ranks() const noexcept { return ranks_; } ///< of this rank's group

    /// Rank 0 of the job writes a line to standard output, whole. Not collective; on rank 0 of a
    /// group.
    void say(std::string const& line);
    /// Asks all groups to leave their work. Not collective; of a group, its rank 0 does it.
    void ask_to_leave();
    /// Whether a group has asked for that: not at the same time on all ranks. Not collective.
    bool must_leave();

    /// Each group works by itself, and waits for the others. `about` is added to the place of an
    /// error, and may be set by the work.
    ///
    /// Collective  over the world
    /// Throws      AgreedError on every rank, that of the lowest failing rank; whatever `work`
    ///             throws on one rank alone
    void work_apart(std::string const& about, std::function<void()> const& work);

  private:
    std::string answer(std::string const& request);

    comm::Communicator const& world_;
    std::size_t count_;
    std::size_t number_;
    comm::Communicator ranks_;
    std::optional<comm::RequestDesk> desk_; ///< of several groups
};

} // namespace lockstep::sites
