#pragma once

#include "checkpoint/store.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// What is decided at a start, the same for train, plan and estimate.
struct Decided {
    config::Deck deck;               ///< settled
    std::vector<std::string> forced; ///< changes that `force` allowed
    bool shares_state =
        true; ///< whether the checkpoint's optimizer shares its state with the deck's
};

/// Checks a deck before anything else is done, so that a typing error is reported as that, and not
/// as a change of the run.
///
/// Throws  Error 64 for an unknown model, task or key of theirs, for a mode of one rank on several
///         ranks, or as `require_complete`; 66 or 69 for a plug-in that cannot be loaded
void require_possible(config::Deck const& deck, int ranks);

/// Settles replicas and batch of a deck as for a new run on `ranks` ranks.
///
/// Throws  Error 64 for an indivisible global batch, or for more ranks than replicas
void settle_new(config::Deck& deck, int ranks);

/// The checkpoint that a start of the deck's run resumes from, verified; nothing for a new run.
/// `local` is the run's directory in checkpoint.local, or empty; `requeued`: an earlier attempt of
/// this job has already done what checkpoint.resume says, and this one resumes from that attempt.
/// Writes nothing.
///
/// Collective  over `world`
/// Throws      AgreedError 65 when all checkpoints, or the one that is named, are damaged
std::optional<checkpoint::Found> found_for(comm::Communicator const& world,
                                           config::Deck const& deck,
                                           std::filesystem::path const& local, bool requeued);

/// Settles the deck of a run that resumes from `found`, or begins, on `ranks` ranks.
///
/// Throws  Error 64 for a change that needs `force`, for an indivisible global batch, or for more
///         ranks than replicas
Decided decide(config::Deck deck, std::optional<checkpoint::Found> const& found, int ranks,
               bool force);

} // namespace lockstep::train
