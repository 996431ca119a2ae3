#pragma once

#include "lockstep/comm/communicator.hpp"

#include <atomic>
#include <memory>

namespace lockstep::comm {

/// While the object exists, a separate thread communicates with other ranks: MPI must not end
/// before.
class SpeakerScope {
  public:
    /// Not collective
    explicit SpeakerScope(Communicator const& comm);
    SpeakerScope(SpeakerScope&&) noexcept = default;
    SpeakerScope& operator=(SpeakerScope&&) = delete;
    ~SpeakerScope();

  private:
    std::shared_ptr<std::atomic<int>> speakers_; ///< null: nobody watches
};

} // namespace lockstep::comm
