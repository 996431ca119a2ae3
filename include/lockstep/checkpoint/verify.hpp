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
    std::string what;            ///< "block 3 has changed since the file was written"
};

/// All damaged parts of a file with checksums, which is a checkpoint or a model file; empty if
/// every bit is as it was written. Any changed, missing or added byte is found, those of the
/// checksum header included; if the checksum header is damaged, nothing can be said about the rest.
/// Reads the whole file, in this process only.
///
/// A file of another kind counts as damaged.
///
/// Throws  Error 66 when there is no such file, 74 when it cannot be read
[[nodiscard]] std::vector<Damage> verify(std::filesystem::path const& path);

/// A file whose every byte was verified against its checksums. Readers of state and of weights
/// accept it instead of a path, so that none of them can use a file that nobody has verified.
///
/// A safetensors file has no checksums: there is nothing to verify, and its reader trusts nothing
/// that the file's length does not confirm.
class VerifiedFile {
  public:
    /// Verifies the whole file, in this process only. Passing a plain path to a reader does this,
    /// too. One thread of the process at a time, since HDF5 may be called.
    ///
    /// Throws  Error 65 naming file, block and bytes; 66 when there is no such file; 74 when it
    ///         cannot be read
    VerifiedFile(std::filesystem::path path);

    /// Does not verify the file: for callers that only show what it says about itself. In this
    /// process only, one thread at a time.
    ///
    /// Throws  Error 65 for a file of another kind; 66 when there is no such file; 74 when it
    ///         cannot be read
    static VerifiedFile unchecked(std::filesystem::path path);

    /// Stands for contents that ranks hold in memory: no file is read.
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

/// Verifies a file by all ranks together: each verifies its share of the blocks.
///
/// Collective  over `comm`; same path on all ranks
/// Throws      AgreedError: 65 naming file, block and bytes; 66 or 74 when a rank cannot read it
VerifiedFile verify_together(comm::Communicator const& comm, std::filesystem::path const& path);

} // namespace lockstep::checkpoint
