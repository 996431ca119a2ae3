#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// Bytes of a file that are not what was sealed.
struct Damage {
    std::uint64_t first_byte = 0;
    std::uint64_t last_byte = 0; ///< inclusive
    std::string what;            ///< "block 3 has changed since it was sealed"
};

/// Every damaged place of a sealed file: a checkpoint, or a model file. None: every bit is as it
/// was written. Any changed, missing or added byte is found, those of the seal included; with a
/// damaged seal nothing can be said of the rest. Reads the whole file, in this process alone.
///
/// Throws  Error 66 when there is no such file, 74 when it cannot be read
std::vector<Damage> verify(std::filesystem::path const& path);

/// The same by all ranks, each its share of the blocks.
///
/// Collective  over `comm`; same path on all ranks
/// Throws      AgreedError: 65 naming file, block and bytes; 66 or 74 when a rank cannot read it
void verify_together(comm::Communicator const& comm, std::filesystem::path const& path);

} // namespace lockstep::checkpoint
