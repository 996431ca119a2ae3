#pragma once

#include "lockstep/comm/communicator.hpp"

#include <memory>

namespace lockstep::comm {

/// While it exists, communicators that an error of this thread unwinds are kept, to be freed once
/// it is known that all their ranks unwind them. Else each would stay until the process ends, which
/// matters to one that continues. For one thread, one object at a time.
class LeftCommunicators {
  public:
    LeftCommunicators();
    LeftCommunicators(LeftCommunicators const&) = delete;
    LeftCommunicators& operator=(LeftCommunicators const&) = delete;
    ~LeftCommunicators();

    /// Frees those that were kept.
    ///
    /// Collective  over the ranks of each, after an AgreedError of all of them
    void free_all() noexcept;

  private:
    friend class Communicator;
    struct List;
    static void keep(Communicator::Native const& native) noexcept;

    std::unique_ptr<List> list_;
};

} // namespace lockstep::comm
