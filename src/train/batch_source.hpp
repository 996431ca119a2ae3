#pragma once

#include "data/loader.hpp"
#include "lockstep/task/task.hpp"

#include <memory>
#include <vector>

namespace lockstep::train {

/// Where the replicas of a rank get their batches from.
class BatchSource {
  public:
    virtual ~BatchSource() = default;
    /// For each replica of the rank in order, its micro-batches in order; on the device that
    /// computes. May be empty.
    virtual task::Tensors next() = 0;
};

/// A loader's batch on `device`, of the fields that `inputs` and `targets` describe. To a GPU from
/// pinned memory, on the current stream: the call does not wait for the copy.
task::Tensors to_tensors(data::Batch const& batch, std::vector<data::FieldInfo> const& inputs,
                         std::vector<data::FieldInfo> const& targets, torch::Device device);

/// Those that a loader makes of a data set.
class LoadedBatches : public BatchSource {
  public:
    /// `inputs` and `targets` say what the loader's batches hold. `loader` must outlive this.
    LoadedBatches(data::Loader& loader, std::vector<data::FieldInfo> inputs,
                  std::vector<data::FieldInfo> targets, torch::Device device);

    task::Tensors next() override;

  private:
    data::Loader& loader_;
    std::vector<data::FieldInfo> inputs_;
    std::vector<data::FieldInfo> targets_;
    torch::Device device_;
};

/// The same, made ahead on a thread of their own: while a step computes, the next batch is copied
/// to the GPU on a stream beside.
class PrefetchedBatches : public BatchSource {
  public:
    /// `loader` must outlive this; nobody else calls it meanwhile.
    PrefetchedBatches(data::Loader& loader, std::vector<data::FieldInfo> const& inputs,
                      std::vector<data::FieldInfo> const& targets, torch::Device device);
    PrefetchedBatches(PrefetchedBatches const&) = delete;
    PrefetchedBatches& operator=(PrefetchedBatches const&) = delete;
    ~PrefetchedBatches() override;

    /// Throws  what the loader or the copy threw, in its turn
    task::Tensors next() override;

  private:
    class Line;
    std::unique_ptr<Line> line_;
};

/// The loader's batches: prefetched to a GPU; on the CPU, where a copy is quicker than a thread's
/// turn, as they are asked for. `loader` must outlive them.
std::unique_ptr<BatchSource> batches_on(torch::Device device, data::Loader& loader,
                                        std::vector<data::FieldInfo> const& inputs,
                                        std::vector<data::FieldInfo> const& targets);

} // namespace lockstep::train
