#pragma once

#include <torch/types.h>

#include <memory>

namespace lockstep::train {

/// Work of a device that was recorded once: CUDA calls it a graph.
class DeviceGraph {
  public:
    virtual ~DeviceGraph() = default;
    /// Starts all of it on the current stream; the host does not wait.
    virtual void replay() = 0;
};

/// Records what one thread puts on the current stream instead of starting it. Memory that is
/// allocated meanwhile belongs to the graphs of this recorder, which are to be replayed one behind
/// the other: a graph uses again what an earlier one has freed.
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

/// Null: not for this kind of device, as far as LibTorch and this program know.
std::unique_ptr<GraphRecorder> make_graph_recorder(torch::Device device);

} // namespace lockstep::train
