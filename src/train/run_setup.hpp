#pragma once

#include "checkpoint/memory_state.hpp"
#include "checkpoint/store.hpp"
#include "federate/keys.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/train/trainer.hpp"
#include "train/run_directory.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "copy_identity.hpp"

namespace lockstep::train {

/// A run's directory and where the run resumes from; the deck with everything in it decided.
struct RunSetup {
    config::Deck deck;
    std::shared_ptr<RunDirectory> directory; ///< on rank 0 only
    std::optional<checkpoint::Found> found;  ///< what to resume from
    bool shares_state = true; ///< whether the optimizer of `found` shares its state with the deck's
    bool foreign = false;     ///< whether `found` is not a checkpoint of the run's directory
    std::string aside;        ///< what was moved aside for this resume, on rank 0; empty: nothing
    std::string without;      ///< that the directory is absent, on rank 0; empty: it is there
    bool requeued = false;    ///< an earlier attempt of this job has done what resume says
    std::filesystem::path local;      ///< the run's directory in checkpoint.local; empty: none
    bool force = false;               ///< --force
    std::vector<std::string> forced;  ///< changes that it allowed
    std::optional<PlaceOnHost> place; ///< among the ranks of all runs of this host
    std::filesystem::path correction; ///< as RunOptions::correction
    std::optional<federate::Secret> privacy_key; ///< where privacy.noise is set
    CopyIdentity copies{};                       ///< of this run and this job
    /// Where `found` is: copies in memory, which are to be closed when the state is restored. Null:
    /// a file.
    std::shared_ptr<checkpoint::MemoryState> in_memory{};
    std::int64_t newest_file = -1; ///< step of the newest intact checkpoint; -1: there is none
};

/// Locks the directory, finds the newest good checkpoint, and settles the deck: names, replicas,
/// batch. Verifies that the deck may change as it did.
///
/// Collective  over `world`
/// Throws      AgreedError: 73 for a directory that cannot be used, 65 when all checkpoints are
///             damaged, 64 for a change that needs --force, for an indivisible global batch, or for
///             more ranks than replicas
RunSetup set_up_run(comm::Communicator const& world, RunOptions const& options);

} // namespace lockstep::train
