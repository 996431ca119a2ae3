#pragma once

#include "checkpoint/record.hpp"
#include "comm/topology.hpp"
#include "data/audit.hpp"
#include "lockstep/comm/communicator.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workload.hpp"

namespace lockstep::train {

/// The one look at all bytes that a run learns from and is measured by, beside the training. One
/// rank of each host has it, and does nothing elsewhere; rank 0's record is kept in checkpoints.
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
    /// Throws  Error 65 or 64 for what the walk has come upon
    void require_good() const;

    /// What hosts have seen becomes known to rank 0, whose record it goes into.
    ///
    /// Collective  over the world
    void share();

    /// Before a run says that it is done, it knows that what it learnt from was whole; but does not
    /// wait long for more than it read.
    ///
    /// Collective  over the world
    /// Throws      AgreedError as `require_good`
    void settle(bool whole_epoch);

    /// Compares the data with what a checkpoint's record says of them, where this is rank 0.
    ///
    /// Throws  Error 64 that names what was changed
    void compare(checkpoint::Record const& record);
    /// The same by an audit of its own: the run's shall not look for the old contents.
    bool differs_from(checkpoint::Record const& record) const;

  private:
    std::unique_ptr<data::Audit> make() const;
    std::optional<std::string> known_of(checkpoint::Record const& record) const;

    comm::Communicator const& world_;
    Workload const& work_;
    std::unique_ptr<data::Dataset> of_environment_; ///< its files, where it has some
    std::unique_ptr<data::Audit> audit_;            ///< null: another rank of the host has it
};

} // namespace lockstep::train
