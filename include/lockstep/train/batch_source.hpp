#pragma once

#include "lockstep/data/loader.hpp"
#include "lockstep/task/task.hpp"

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

/// A loader's batch on `device`, of the fields that `inputs` and `targets` describe.
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

} // namespace lockstep::train
