#pragma once

#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::train {

/// Samples without targets: the files of a data set.
struct Unlabelled {
    std::string files;
    std::string named; ///< how messages call them
};

struct PredictOptions {
    std::filesystem::path output{}; ///< .csv, .jsonl or .h5
    std::int64_t batch = 128;       ///< samples that are computed together, by one rank
};

struct PredictReport {
    std::int64_t samples = 0;
    std::vector<std::string> remarks{}; ///< for the user
};

/// Writes what a model says of samples, each sample once and in order: the same bytes on any number
/// of ranks. `deck` is the one that the model was trained with.
///
/// Collective  over `world`; same arguments on all ranks
/// Throws      AgreedError: 64 for a task without predictions, or a form of file that cannot hold
///             them; 65 for samples that do not fit the model's training data; 66 or 74 for the
///             samples; 69 for a device that is not here; 73 or 74 when the output cannot be
///             written
PredictReport predict(comm::Communicator const& world, config::Deck const& deck,
                      checkpoint::VerifiedFile const& file, Unlabelled const& samples,
                      PredictOptions const& options);

} // namespace lockstep::train
