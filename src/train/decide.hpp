#pragma once

#include "checkpoint/store.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// What a start comes to, whoever asks: train, plan or estimate.
struct Decided {
    config::Deck deck;               ///< settled
    std::vector<std::string> forced; ///< changes that `force` allowed
    bool shares_state = true;        ///< the optimizer of the checkpoint with the deck's
};

/// Looks at a deck before anything is done for it: what is mistyped is told as that, and not as a
/// change of the run.
///
/// Throws  Error 64 for a model, a task or a key of theirs that there is not, or for a mode of one
///         rank on several; 66 or 69 for a plug-in that cannot be loaded
void require_possible(config::Deck const& deck, int ranks);

/// Settles replicas and batch of a deck as for a new run on so many ranks.
///
/// Throws  Error 64 for an indivisible global batch, or for more ranks than replicas
void settle_new(config::Deck& deck, int ranks);

/// The checkpoint that a start of the deck's run resumes from, verified; nothing where it begins.
/// `local` is the run's place in checkpoint.local, or empty; `requeued`: what checkpoint.resume
/// says was done by an earlier attempt of this job, which this one resumes from. Writes nothing.
///
/// Collective  over `world`
/// Throws      AgreedError 65 when all checkpoints, or the one that is named, are damaged
std::optional<checkpoint::Found> found_for(comm::Communicator const& world,
                                           config::Deck const& deck,
                                           std::filesystem::path const& local, bool requeued);

/// Settles the deck of a run that resumes from `found`, or begins, on so many ranks.
///
/// Throws  Error 64 for a change that needs `force`, for an indivisible global batch, or for more
///         ranks than replicas
Decided decide(config::Deck deck, std::optional<checkpoint::Found> const& found, int ranks,
               bool force);

} // namespace lockstep::train
