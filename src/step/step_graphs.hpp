#pragma once

#include "device/device_graph.hpp"
#include "lockstep/task/task.hpp"
#include "nn/dropout_masks.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gradient_sink.hpp"

namespace lockstep::train {

/// How passes of forward and backward were run.
struct GraphUse {
    std::int64_t replayed = 0;
    std::int64_t eager = 0; ///< computed kernel by kernel
    std::string remark{};   ///< why some are not replayed, once; empty: nothing to say
};

/// Forward and backward of a batch, recorded by the device and replayed: the same work with one
/// launch for many kernels. What differs between batches lies in tensors at fixed addresses:
/// inputs, targets, dropout's masks, the loss scale. A recording is cut wherever buckets of
/// gradients are complete, so that they are sent while backward still runs, as they are without
/// graphs.
///
/// Batches of one shape, whose gradients go to the same memory, share a recording. The first of
/// them run eagerly, since libraries prepare themselves in their first calls. So do batches with
/// lengths, batches whose shapes keep changing, and those that the device could not record, or
/// whose graph would not leave enough memory: a graph keeps that of a pass until the run ends.
class StepGraphs {
  public:
    struct Pass {
        task::Tensors const& batch;
        GradientSink& sink; ///< after `begin`, and `announce` where it is the last
        std::uint64_t random_key = 0;
        double loss_scale = 1;
        /// Forward and backward of a batch, whose loss is multiplied by the scale, a scalar tensor.
        std::function<task::Loss(task::Tensors const&, torch::Tensor const& scale)> compute;
    };

    /// What a recording must leave of the device's memory.
    enum class Memory { any, enough };

    StepGraphs(std::unique_ptr<GraphRecorder> recorder, Memory left)
        : recorder_(std::move(recorder)), left_(left) {}

    /// While this exists, every backward that this thread starts runs on this thread: recording
    /// needs that, and eager passes do the same.
    class OneThread {
      public:
        OneThread();
        OneThread(OneThread const&) = delete;
        OneThread& operator=(OneThread const&) = delete;
        ~OneThread();

      private:
        bool before_;
    };

    /// Runs a pass, and returns its detached loss if it was replayed; nothing if `eager` has run,
    /// which computes it.
    ///
    /// Throws  what `eager` throws, or the device
    std::optional<task::Loss> run(Pass const& pass, std::function<void()> const& eager);

    /// The use since the last call.
    GraphUse take_use() { return std::exchange(use_, {}); }

  private:
    struct Segment {
        std::unique_ptr<DeviceGraph> graph;
        int last = 0; ///< buckets up to here are complete after it; 0: none
    };
    /// The recording of all passes of one form.
    struct Recording {
        int passes = 0; ///< so far
        bool failed = false;
        nn::DropoutMasks masks;
        task::Tensors batch; ///< where replays read it
        torch::Tensor scale; ///< a scalar
        std::vector<Segment> segments;
        task::Loss loss;           ///< where replays leave it
        std::vector<char> written; ///< entries that have a gradient afterwards
    };

    Recording* recording_of(Pass const& pass);
    void refuse(std::string const& what);
    void record(Recording& recording, Pass const& pass);
    void give_up(Recording& recording, Pass const& pass, std::string const& why);
    static void fill(Recording& recording, Pass const& pass);

    std::unique_ptr<GraphRecorder> recorder_;
    Memory left_;
    std::map<std::string, Recording> recordings_; ///< by form
    GraphUse use_;
    std::set<std::string> refused_; ///< reasons that have been reported
};

} // namespace lockstep::train
