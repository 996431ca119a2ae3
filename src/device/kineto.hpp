#pragma once

#include "base/recorder.hpp"
#include "trace/rank_trace.hpp"

#include <torch/types.h>

#include <cstdint>

namespace lockstep::train {

/// LibTorch's own profiler, Kineto, which records operators, and kernels of a device. It exists
/// once per process.
class Kineto {
  public:
    /// Prepares the profiler, which takes a moment. `recorder`: times are given in its clock.
    Kineto(Recorder const& recorder, torch::Device device, bool memory);
    Kineto(Kineto const&) = delete;
    Kineto& operator=(Kineto const&) = delete;
    ~Kineto();

    /// Throws  c10::Error where somebody else profiles this process
    void start();
    /// Stops, and adds what was recorded since `start`.
    ///
    /// Throws  c10::Error
    void stop(trace::RankActivity& into);

  private:
    Recorder const& recorder_;
    torch::Device device_;
    bool memory_;
    bool runs_ = false;
    std::int64_t ahead_ns_ = 0; ///< by how much LibTorch's clock is ahead of the recorder's
};

} // namespace lockstep::train
