#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstddef>

namespace lockstep::comm {

/// Zeroed memory that the ranks of one host share; a rank alone has it for itself. It is unlinked
/// before it gets its pages, so that no memory is left over however the job ends. Its pages are
/// allocated at once, since a process that touches shared memory without pages is killed by SIGBUS.
class SharedBlock {
  public:
    /// Collective  over `host`, whose ranks can share memory; same size on all
    /// Throws      AgreedError 69 when the host's shared memory has too little room, or cannot be
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
