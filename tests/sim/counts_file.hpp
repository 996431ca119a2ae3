#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::sim {

/// What a process did so far.
struct Counts {
    std::uint64_t launches = 0;
    std::uint64_t waits = 0; ///< of streams
    std::uint64_t host_waits = 0;
    std::uint64_t races = 0;
    std::uint64_t peers = 0; ///< ranks that it had messages with
};

/// Counts that others can read at any time, and after the process ended in any way: a mapped file
/// DIRECTORY/PID, the members above in this machine's order of bytes.
class CountsFile {
  public:
    /// Empty: in no file. Throws  std::system_error
    explicit CountsFile(std::string const& directory);

    Counts* operator->() const noexcept { return counts_.get(); }

  private:
    std::shared_ptr<Counts> counts_;
};

} // namespace lockstep::sim
