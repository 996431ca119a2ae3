#pragma once

#include "batches/workload.hpp"
#include "checkpoint/record.hpp"
#include "comm/topology.hpp"
#include "data/audit.hpp"
#include "lockstep/comm/communicator.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// Checks all bytes that a run learns from and is measured by, once, in parallel with training. One
/// rank of each host does it; on the others it does nothing. Rank 0's record is kept in
/// checkpoints.
class RunAudit {
  public:
    /// `work` must outlive it.
    ///
    /// Not collective
    /// Throws  Error as data::Dataset and data::Audit do
    RunAudit(comm::Communicator const& world, comm::Topology const& topology,
             config::Deck const& deck, Workload const& work);

    std::vector<std::string> remarks() const; ///< what cannot be verified, and why
    std::optional<std::string> record() const;

    void start();
    /// Throws  Error 65 or 64 for what the walk has found
    void require_good() const;

    /// Sends what hosts have seen to rank 0, which adds it to its record.
    ///
    /// Collective  over the world
    void share();

    /// Makes sure, before a run reports that it is done, that the data it learnt from was
    /// undamaged; it does not wait long for data that was not read.
    ///
    /// Collective  over the world
    /// Throws      AgreedError as `require_good`
    void settle(bool whole_epoch);

    /// Compares the data with what a checkpoint's record says of them, on rank 0.
    ///
    /// Throws  Error 64 that names what was changed
    void compare(checkpoint::Record const& record);
    /// The same by a separate audit, since the run's own must not look for the old contents.
    bool differs_from(checkpoint::Record const& record) const;

  private:
    std::unique_ptr<data::Audit> make() const;
    std::optional<std::string> known_of(checkpoint::Record const& record) const;

    comm::Communicator const& world_;
    Workload const& work_;
    std::unique_ptr<data::Dataset> of_environment_; ///< the environment's files, where it has some
    std::unique_ptr<data::Audit> audit_;            ///< null: another rank of the host has it
};

} // namespace lockstep::train
