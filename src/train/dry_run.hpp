#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::train {

/// Seconds of one step on this rank.
struct DryRunStep {
    double whole = 0;
    double data = 0; ///< with this step's share of the episodes that an iteration plays
    double forward = 0;
    double backward = 0;
    double exposed = 0;   ///< the sum over ranks, after all had arrived
    double imbalance = 0; ///< waiting for slower ranks
    double hidden = 0;    ///< of the sum over ranks, while backward ran
    double update = 0;
};

/// What a dry run knows before its first step.
struct DryRunSize {
    double parameters = 0;       ///< that are trained
    double arena_bytes = 0;      ///< of all parameters, or of all gradients
    double checkpoint_bytes = 0; ///< of a file
    int buckets = 0;
    std::string exchange; ///< name of the exchange of gradients
    bool follows = false; ///< on several hosts, parameters travel while the next forward runs
    std::int64_t replicas = 0;
    std::int64_t samples_per_step = 0;
    std::int64_t steps_per_epoch = 0;
    std::int64_t samples_per_epoch = 0;
    double epochs = 0;                ///< of the whole run, as the deck says
    std::vector<std::string> remarks; ///< on the sets, and on the workload
    bool plays = false; ///< each replica plays episodes: more replicas learn from more samples
};

/// The deck's training without a run: its data, model and engine take steps, and nothing is
/// written. The deck is settled as for a new run on the ranks of `world`.
class DryRun {
  public:
    /// Collective  over `world`, which must outlive it
    /// Throws      AgreedError as a run's start does
    DryRun(comm::Communicator const& world, config::Deck deck);
    ~DryRun();
    DryRun(DryRun const&) = delete;
    DryRun& operator=(DryRun const&) = delete;

    DryRunSize const& size() const noexcept;

    /// Collective  over the world
    /// Throws      as Engine::step; Error 71 on this rank only, where memory does not suffice
    DryRunStep step();

    /// The most bytes that this rank's process had in use since this was made: of its device, or of
    /// the host for a CPU.
    std::uint64_t peak_bytes() const;
    /// The bytes that are free now: on its device, or on the host for all its ranks.
    std::uint64_t free_bytes() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace lockstep::train
