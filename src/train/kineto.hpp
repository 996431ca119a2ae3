#pragma once

#include "base/recorder.hpp"

#include <torch/types.h>

#include <cstdint>

#include "trace/rank_trace.hpp"

namespace lockstep::train {

/// LibTorch's own profiler, Kineto, which records operators, and kernels of a device. It exists
/// once per process.
class Kineto {
  public:
    /// Prepares it, which takes a moment. `recorder`: whose clock times are told by.
    Kineto(Recorder const& recorder, torch::Device device, bool memory);
    Kineto(Kineto const&) = delete;
    Kineto& operator=(Kineto const&) = delete;
    ~Kineto();

    /// Throws  c10::Error where somebody else profiles this process
    void start();
    /// Adds what it has recorded since.
    ///
    /// Throws  c10::Error
    void stop(trace::RankActivity& into);

  private:
    Recorder const& recorder_;
    torch::Device device_;
    bool memory_;
    bool runs_ = false;
    std::int64_t ahead_ns_ = 0; ///< LibTorch's clock of the recorder's
};

} // namespace lockstep::train
