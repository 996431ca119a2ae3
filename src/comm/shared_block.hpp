#pragma once

#include "base/descriptor.hpp"
#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <span>

namespace lockstep::comm {

/// Zeroed memory that the ranks of one host share; a rank alone has it for itself. It is unlinked
/// before it gets its pages, so that no memory is left over however the job ends. Its pages are
/// allocated at once, since a process that touches shared memory without pages is killed by SIGBUS
/// where the host has no more; those behind the first `kept` bytes only when they are asked for.
class SharedBlock {
  public:
    /// Collective  over `host`, whose ranks can share memory; same size on all
    /// Throws      AgreedError 69 when the host's shared memory has too little room, or cannot be
    ///             shared by these ranks
    SharedBlock(Communicator const& host, std::size_t bytes) : SharedBlock(host, bytes, bytes) {}
    SharedBlock(Communicator const& host, std::size_t bytes, std::size_t kept);
    /// For the threads of one process. Not collective.
    explicit SharedBlock(std::size_t bytes) : SharedBlock(bytes, bytes) {}
    SharedBlock(std::size_t bytes, std::size_t kept);
    SharedBlock(SharedBlock const&) = delete;
    SharedBlock& operator=(SharedBlock const&) = delete;
    ~SharedBlock();

    std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

    /// Gives `part` pages, where it has none: zeros. Before anybody writes there. Not collective;
    /// several ranks may.
    ///
    /// Throws  Error 69 when the host's shared memory has too little room
    void populate(std::span<std::byte const> part) const;
    /// Takes the whole pages of `part` away from all ranks; what it held is lost. Not collective.
    void discard(std::span<std::byte> part) const noexcept;
    /// Gives this rank zeros of its own instead of the whole pages of `part`, after an error: what
    /// cannot be kept from running on must not be killed for pages that it lacks.
    void replace(std::span<std::byte> part) const noexcept;

  private:
    std::byte* data_ = nullptr; ///< on a page
    std::size_t size_ = 0;
    bool sparse_ = false; ///< some of its pages come later
    Descriptor file_;     ///< of such memory, of several ranks
};

} // namespace lockstep::comm
