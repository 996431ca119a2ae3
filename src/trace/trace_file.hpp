#pragma once

#include "lockstep/comm/communicator.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep::trace {

/// A file of text, compressed by gzip, which gets its final name once it is complete.
class TraceFile {
  public:
    /// Throws  Error 73 or 74
    explicit TraceFile(std::filesystem::path path);
    TraceFile(TraceFile const&) = delete;
    TraceFile& operator=(TraceFile const&) = delete;
    /// Removes the file if it was not committed.
    ~TraceFile();

    /// Throws  Error 74
    void append(std::string_view text);
    /// Throws  Error 74
    void commit();

  private:
    struct Stream;
    std::filesystem::path path_;
    std::filesystem::path partial_;
    std::unique_ptr<Stream> stream_;
};

/// Writes the events of all ranks into one file on rank 0, rank by rank, so that rank 0 holds one
/// rank's events at a time.
///
/// Collective  over `comm`
/// Throws      Error 73 or 74 on rank 0 only, after all ranks have sent theirs
void write_merged(comm::Communicator const& comm, std::filesystem::path const& path,
                  std::string const& events, std::string const& tail);

} // namespace lockstep::trace
