#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstddef>

namespace lockstep::comm {

/// Zeroed memory that the ranks of one host share; a rank alone has it for itself. It has no name
/// once it is made, so that nothing is left over whatever kills the job; its room is claimed at
/// once, since touching shared memory that is not there ends a process by SIGBUS.
class SharedBlock {
  public:
    /// Collective  over `host`, whose ranks can share memory; same size on all
    /// Throws      AgreedError 69 when the host's shared memory has not room enough, or cannot be
    ///             shared by these ranks
    SharedBlock(Communicator const& host, std::size_t bytes);
    SharedBlock(SharedBlock const&) = delete;
    SharedBlock& operator=(SharedBlock const&) = delete;
    ~SharedBlock();

    std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

  private:
    std::byte* data_ = nullptr; ///< on a page
    std::size_t size_ = 0;
};

} // namespace lockstep::comm
