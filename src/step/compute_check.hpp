#pragma once

#include "arena/buffers.hpp"
#include "arena/layout.hpp"
#include "lockstep/comm/communicator.hpp"
#include "step/batch_source.hpp"
#include "step/check_rotation.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "local_step.hpp"

namespace lockstep::train {

/// Compares what two hosts compute of the same replica in a step, bit by bit: its gradient before
/// it is added to others, its buffers and its loss. Whether they are the same is a term of the
/// step's sums; a third host computes only where they are not.
class ComputeCheck {
  public:
    struct Setup {
        comm::Communicator const& world;
        Layout const& layout;
        Buffers const& buffers; ///< that replicas start a step from
        nn::Model const& model; ///< whose buffers these are
        CheckRotation rotation;
        std::vector<std::string> host_of_rank;
    };
    /// A check in a step.
    struct Due {
        std::int64_t number = 0;
        /// The batches of any replica in this step.
        std::function<std::unique_ptr<BatchSource>(int replica)> batches;
    };

    explicit ComputeCheck(Setup parts) : parts_(std::move(parts)), start_(parts_.model) {}

    /// Before the replicas of this rank compute.
    void begin(Due const& due, LocalStep& local);
    /// After they have: the second rank repeats its replica.
    ///
    /// Returns  this rank's term of the sum that is 0 where nothing differs
    double compare(Due const& due, LocalStep& local);
    /// The sum is 0: forgets what was compared.
    ///
    /// Returns  the ranks that were
    CheckedReplica pass() {
        own_ = {};
        return checked_;
    }
    /// The sum is not 0: finds out who is wrong, and where.
    ///
    /// Collective  over the world
    /// Throws      ComputedWrongly (76)
    [[noreturn]] void convict(Due const& due, LocalStep& local, std::int64_t step);

  private:
    struct Found {
        std::string where; ///< "layers.0.weight[17]"
        std::string owners;
        std::string seconds;
    };
    std::vector<std::uint64_t> hashes() const;
    std::vector<std::span<std::byte const>> bytes() const;
    void take(ReplicaPass pass);
    Found find(std::vector<std::uint64_t> const& owner,
               std::vector<std::uint64_t> const& second) const;

    Setup parts_;
    Buffers start_; ///< of the step that is checked
    CheckedReplica checked_;
    ReplicaPass own_; ///< of this rank, on the host; empty on ranks that are not asked
};

} // namespace lockstep::train
