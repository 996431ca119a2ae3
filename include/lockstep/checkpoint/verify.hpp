#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

/// Bytes of a file that are not what was recorded.
struct Damage {
    std::uint64_t first_byte = 0;
    std::uint64_t last_byte = 0; ///< inclusive
    std::string what;            ///< "block 3 has changed since it was written"
};

/// Every damaged place of a recorded file: a checkpoint, or a model file. None: every bit is as it
/// was written. Any changed, missing or added byte is found, those of the checksum header included;
/// with a damaged checksum header nothing can be said of the rest. Reads the whole file, in this
/// process alone.
///
/// A file of another kind is damaged. Throws  Error 66 when there is no such file, 74 when it
/// cannot be read
[[nodiscard]] std::vector<Damage> verify(std::filesystem::path const& path);

/// A file every byte of which was found to be as it was recorded. Readers of state and of weights
/// take it instead of a path, so that none of them can use what nobody has looked at.
///
/// A safetensors file has no checksums: there is nothing to look at, and its reader believes no
/// more of it than its length proves.
class VerifiedFile {
  public:
    /// Reads the whole file, in this process alone; so does whoever hands a reader a plain path.
    /// One thread of the process at a time, since HDF5 may be called.
    ///
    /// Throws  Error 65 naming file, block and bytes; 66 when there is no such file; 74 when it
    ///         cannot be read
    VerifiedFile(std::filesystem::path path);

    /// For those who only show what a file says of itself. In this process alone, one thread at a
    /// time.
    ///
    /// Throws  Error 65 for a file of another kind; 66 when there is no such file; 74 when it
    /// cannot
    ///         be read
    static VerifiedFile unchecked(std::filesystem::path path);

    /// Names contents that ranks have in memory: no file is read.
    static VerifiedFile in_memory(std::filesystem::path name);

    std::filesystem::path const& path() const noexcept { return path_; }

  private:
    struct Known {};
    VerifiedFile(std::filesystem::path path, Known /*known*/) : path_(std::move(path)) {}
    /// Collective  over `comm`
    friend VerifiedFile verify_together(comm::Communicator const& comm,
                                        std::filesystem::path const& path);

    std::filesystem::path path_;
};

/// The same by all ranks, each its share of the blocks.
///
/// Collective  over `comm`; same path on all ranks
/// Throws      AgreedError: 65 naming file, block and bytes; 66 or 74 when a rank cannot read it
VerifiedFile verify_together(comm::Communicator const& comm, std::filesystem::path const& path);

} // namespace lockstep::checkpoint
