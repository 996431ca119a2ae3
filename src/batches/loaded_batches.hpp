#pragma once

#include "data/loader.hpp"
#include "lockstep/task/task.hpp"
#include "step/batch_source.hpp"

#include <memory>
#include <vector>

namespace lockstep::train {

/// A loader's batch on `device`, of the fields that `inputs` and `targets` describe. Copies to a
/// GPU are from pinned memory, on the current stream: the call does not wait for them.
task::Tensors to_tensors(data::Batch const& batch, std::vector<data::FieldInfo> const& inputs,
                         std::vector<data::FieldInfo> const& targets, torch::Device device);

/// The batches that a loader makes of a data set, copied when they are requested.
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

/// The loader's batches: prefetched to a GPU; on the CPU, where a copy is faster than a switch of
/// threads, copied when they are requested. `loader` must outlive them.
std::unique_ptr<BatchSource> batches_on(torch::Device device, data::Loader& loader,
                                        std::vector<data::FieldInfo> const& inputs,
                                        std::vector<data::FieldInfo> const& targets);

} // namespace lockstep::train
