#pragma once

#include "data/loader.hpp"
#include "lockstep/task/task.hpp"
#include "step/batch_source.hpp"

#include <memory>
#include <vector>

namespace lockstep::train {

/// A loader's batches, copied in advance on a thread of their own: while a step computes, the next
/// batch is copied to the GPU on another stream.
class PrefetchedBatches : public BatchSource {
  public:
    /// `loader` must outlive this; nobody else calls it meanwhile.
    PrefetchedBatches(data::Loader& loader, std::vector<data::FieldInfo> const& inputs,
                      std::vector<data::FieldInfo> const& targets, torch::Device device);
    PrefetchedBatches(PrefetchedBatches const&) = delete;
    PrefetchedBatches& operator=(PrefetchedBatches const&) = delete;
    ~PrefetchedBatches() override;

    /// Throws  what the loader or the copy of this batch threw
    task::Tensors next() override;

  private:
    class Line;
    std::unique_ptr<Line> line_;
};

} // namespace lockstep::train
