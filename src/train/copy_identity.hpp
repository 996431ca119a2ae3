#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "train/run_directory.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep::train {

/// Whose copies in memory are this run's: those of these checkpoints and this job.
struct CopyIdentity {
    std::uint64_t run = 0; ///< hash of the checkpoints' identity; 0: the run makes no copies
    std::uint64_t job = 0; ///< hash of the scheduler's job or of the launch
    bool follows = false;  ///< an earlier attempt of the job may have left copies
};

/// Whether the deck and the launch ask for copies in memory.
bool wants_copies(config::Deck const& deck);

/// The text in checkpoints/id, which a run keeps as long as it has its checkpoints; made when it
/// is not there. For one process.
///
/// Throws  Error 73 or 74 where it cannot be written
std::string checkpoints_id(std::filesystem::path const& checkpoints);

/// CopyIdentity::run of the checkpoints that are there; 0: they have no identity. For one process.
std::uint64_t copies_of(std::filesystem::path const& checkpoints);

/// Settles whose copies these are; those of earlier jobs are removed on all hosts. `directory`:
/// null on all ranks but 0.
///
/// Collective  over `world`
/// Throws      AgreedError 73 or 74 where the identity cannot be written
CopyIdentity identify_copies(comm::Communicator const& world, config::Deck const& deck,
                             RunDirectory const* directory);

} // namespace lockstep::train
