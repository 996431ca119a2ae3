#pragma once

#include "comm/replica_tree.hpp"
#include "lockstep/nn/replica_sums.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace lockstep::train {

/// Sums over replicas that run on threads of a process; one thread exchanges with the other
/// processes.
class ThreadReplicaSums : public nn::ReplicaSums {
  public:
    /// Fills in the rows of other processes' replicas, where `by_replica` is [replicas, values].
    ///
    /// Collective  over the processes
    using AskOthers = std::function<void(std::span<double> by_replica)>;

    /// Hosts the replicas below `own` out of `replicas`.
    ThreadReplicaSums(comm::TreeNode own, int replicas, AskOthers ask_others,
                      double timeout_seconds);

    void sum(int replica, std::span<double> values) override;

    /// Notes that a replica of this process has failed: all that wait now or later throw.
    void abandon();

  private:
    comm::TreeNode own_;
    int replicas_;
    AskOthers ask_others_;
    std::chrono::duration<double> timeout_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<double> rows_; ///< [replicas, values]
    std::vector<double> sum_;
    int arrived_ = 0;
    std::uint64_t round_ = 0;
    bool abandoned_ = false;
};

} // namespace lockstep::train
