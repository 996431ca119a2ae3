#pragma once

#include "base/recorder.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/comm/communicator.hpp"

#include <string_view>

namespace lockstep::comm {

/// Says what the rank is doing within its phase, while the object exists.
class ActivityScope {
  public:
    /// Not collective
    ActivityScope(Communicator const& comm, std::string_view activity);
    ActivityScope(ActivityScope const&) = delete;
    ActivityScope& operator=(ActivityScope const&) = delete;
    ~ActivityScope();

  private:
    Scope recorded_;
    HeartbeatTable const* heartbeats_;
};

} // namespace lockstep::comm
