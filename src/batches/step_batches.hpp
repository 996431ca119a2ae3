#pragma once

#include "comm/replica_tree.hpp"
#include "data/loader.hpp"
#include "data/plan.hpp"

#include <cstdint>

namespace lockstep::train {

/// Steps [first, last) of a run.
struct Steps {
    std::int64_t first = 0;
    std::int64_t last = 0;
};

/// The batches of a rank in order, k = 0, 1, 2, …: for each step, for each replica of its node, its
/// micro-batches.
class StepBatches {
  public:
    /// `plan` must outlive what `request` returns.
    StepBatches(data::TrainPlan const& plan, comm::TreeNode node, std::int64_t accumulate,
                Steps steps);

    /// The epoch that batch k belongs to.
    std::int64_t epoch(std::int64_t k) const { return (begin_ + k) / of_epoch_; }

    /// The samples of each batch.
    data::Loader::Request request() const;

  private:
    std::int64_t step(std::int64_t k) const; ///< of its epoch

    data::TrainPlan const* plan_;
    comm::TreeNode node_;
    std::int64_t full_;     ///< batches of a step, except an epoch's last
    std::int64_t last_;     ///< step of an epoch
    std::int64_t of_epoch_; ///< batches
    std::int64_t begin_;    ///< batches before the first step
    std::int64_t end_step_;
};

} // namespace lockstep::train
