#pragma once

#include <torch/types.h>

#include <memory>

namespace lockstep::train {

/// Work of a device that was recorded once (a CUDA graph).
class DeviceGraph {
  public:
    virtual ~DeviceGraph() = default;
    /// Starts all of it on the current stream; the host does not wait.
    virtual void replay() = 0;
};

/// Records what one thread enqueues on the current stream instead of starting it. Memory that is
/// allocated meanwhile belongs to the graphs of this recorder, which must be replayed one after the
/// other: a graph reuses memory that an earlier one has freed.
class GraphRecorder {
  public:
    virtual ~GraphRecorder() = default;

    /// Throws  where the stream cannot be recorded: a device's default stream cannot
    virtual void begin() = 0;
    /// Throws  where something since `begin` could not be recorded: then `abandon` must follow
    virtual std::unique_ptr<DeviceGraph> end() = 0;
    /// Forgets what has been recorded since `begin`.
    virtual void abandon() noexcept = 0;
};

/// Makes a recorder; null where LibTorch or this program supports none for this kind of device.
std::unique_ptr<GraphRecorder> make_graph_recorder(torch::Device device);

} // namespace lockstep::train
