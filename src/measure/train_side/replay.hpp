#pragma once

#include "lockstep/base/error.hpp"
#include "lockstep/base/signals.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/events/events.hpp"
#include "lockstep/train/trainer.hpp"
#include "measure/replay_options.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "step_look.hpp"

namespace lockstep::measure {

/// Where to begin, and with which deck.
struct ReplayStart {
    std::filesystem::path run;
    std::string deck;                 ///< that the step was done with, as `to_text` prints it
    std::string origin;               ///< the file that it is in
    std::filesystem::path checkpoint; ///< the newest intact one before the step; empty: there is
                                      ///< none, and the run's first step comes first
    std::int64_t from = 0;            ///< its step
};

/// Where to begin for a step; 0: the run's last. Rank 0 looks, while the run may be writing.
///
/// Collective  over `world`
/// Throws      AgreedError 66 when `run` is no directory of a run; 65 or 74 for what cannot be read
ReplayStart agreed_start(comm::Communicator const& world, std::filesystem::path const& run,
                         std::int64_t step);

/// The hashes of its weights that a run has recorded, by step. For one process.
std::map<std::int64_t, std::uint64_t> recorded_hashes(std::filesystem::path const& run);

/// What rank 0 knows of steps that were done again.
struct SeenSteps {
    std::map<std::int64_t, std::uint64_t> recorded; ///< hashes of weights by the run, by step
    std::map<std::int64_t, std::string> hashes;     ///< that came out, in hexadecimal digits
    std::int64_t begun_at = 0; ///< the step that the weights were of at the beginning
    std::string begun_with{};  ///< their hash; empty: no host has all of them
    train::Step last;
    std::vector<train::Histogram> gradients; ///< of the last step, where it was dumped
    std::int64_t compared = 0;               ///< steps
    std::int64_t first_other = 0;            ///< the first with other weights; 0: none
};

/// Steps of a run that are done again in a temporary directory: nothing of the run is written.
class Replay {
  public:
    /// Up to the step `last`; 0: the run's last.
    Replay(comm::Communicator const& world, ReplayStart start, std::int64_t last,
           StepLook::For reason);

    /// With a deck that is the start's but for what its user has changed of it. Rank 0 prints what
    /// it does.
    ///
    /// Collective  over the world
    /// Throws      AgreedError 64 for a step that the run does not have; 75 after a signal; as
    ///             train::Trainer, but for values that are not finite where their origin is looked
    ///             for
    void run(config::Deck deck, SignalRequests const& signals);

    SeenSteps const& seen() const noexcept { return seen_; } ///< on rank 0
    /// What each rank saw of the last step, where it was dumped; on rank 0.
    std::vector<std::string> const& packed() const noexcept { return packed_; }
    /// Where the first value that is not finite came from, on rank 0; empty: there is none.
    std::string const& origin() const noexcept { return origin_; }
    std::int64_t ended_in() const noexcept { return ended_in_; } ///< the step of that value

  private:
    train::RunOptions options_of(config::Deck const& deck);
    void train(config::Deck const& deck, SignalRequests const& signals);
    void require_done(std::int64_t done, SignalRequests const& signals) const;

    comm::Communicator const& world_;
    ReplayStart start_;
    std::int64_t last_;
    StepLook::For reason_;
    StepLook look_;
    SeenSteps seen_;
    std::vector<std::string> packed_;
    std::string origin_;
    std::int64_t ended_in_ = 0;
};

/// Does steps of a run again; rank 0 prints which weights came out, and whether they are those that
/// the run has recorded; or where the first value that is not finite came from.
///
/// Collective  over `world`; same arguments on all ranks
/// Throws      AgreedError as Replay::run; 73 or 74 for a dump that cannot be written
/// Returns     `different` where a recorded hash is another one, or where all values are finite
/// that
///             were looked at for one that is not
ExitCode replay(comm::Communicator const& world, ReplayStart const& start, config::Deck const& deck,
                ReplayOptions const& options, SignalRequests const& signals);

} // namespace lockstep::measure
