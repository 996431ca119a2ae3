#pragma once

#include "lockstep/comm/communicator.hpp"
#include "lockstep/events/events.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::measure {

/// What rank 0 knows of a step that is dumped.
struct DumpedStep {
    train::Step step;
    std::vector<train::Histogram> gradients; ///< of each parameter, before clipping
    std::string run;
};

/// What all ranks saw (StepLook::packed) as one: its "replicas", "batches" and "operators".
nlohmann::json joined_ranks(std::vector<std::string> const& packed);

/// Writes what all ranks saw of a step (StepLook::packed) into one new HDF5 file, in the order of
/// replicas; docs/formats.md says what is in it.
///
/// Throws  Error 73 or 74 where the file cannot be written
void write_dump(std::filesystem::path const& file, DumpedStep const& of_rank_0,
                std::vector<std::string> const& packed);

} // namespace lockstep::measure
