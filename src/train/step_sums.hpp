#pragma once

#include "comm/tree_sum.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::train {

/// What all ranks tell each other: the loss, its weight and the task's figures of each replica,
/// non-zero on the rank that hosts it only; a signal number for each rank, and how long it waited
/// in the step before; rank 0's clock; the task's counts, each rank's part of them; and for each
/// parameter on how many ranks it got a gradient.
class StepSums {
  public:
    struct Form {
        int replicas = 1;
        int ranks = 1;
        int figures = 0; ///< of the task
        int counts = 0;  ///< of the task
        std::size_t entries = 0;

        int of_replica() const { return 2 + figures; }
        std::size_t count() const {
            return static_cast<std::size_t>(of_replica() * replicas + 2 * ranks + 1 + counts) +
                   entries;
        }
    };

    explicit StepSums(Form const& form) : form_(form), values_(form.count(), 0) {}

    std::span<double> values() { return values_; }
    double& of_replica(int replica, int which) { return at(form_.of_replica() * replica + which); }
    double& signal(int rank) { return of_replica(form_.replicas, rank); }
    double& waited(int rank) { return signal(form_.ranks + rank); }
    double& minutes() { return signal(2 * form_.ranks); }
    double& figure(int replica, int which) { return of_replica(replica, 2 + which); }

    /// Whole numbers, exact in any order.
    void add_counts(std::vector<std::int64_t> const& of_one) {
        std::transform(
            of_one.begin(), of_one.end(), first_count(), first_count(),
            [](std::int64_t more, double before) { return before + static_cast<double>(more); });
    }
    std::vector<std::int64_t> counts() {
        std::vector<std::int64_t> counts;
        std::transform(first_count(), ranks_with_gradient(), std::back_inserter(counts),
                       [](double count) { return static_cast<std::int64_t>(count); });
        return counts;
    }

    double sum(int which) {
        std::vector<double> of_all;
        for (int replica = 0; replica < form_.replicas; ++replica) {
            of_all.push_back(of_replica(replica, which));
        }
        return comm::tree_sum(of_all);
    }
    std::vector<double> figures() {
        std::vector<double> sums;
        for (int which = 0; which < form_.figures; ++which) {
            sums.push_back(sum(2 + which));
        }
        return sums;
    }

    void set_used(std::vector<char> const& used) {
        std::copy(used.begin(), used.end(), ranks_with_gradient());
    }
    /// By entry: on no rank.
    std::vector<char> idle() {
        std::vector<char> idle(form_.entries);
        std::transform(ranks_with_gradient(), values_.end(), idle.begin(),
                       [](double ranks) { return ranks == 0 ? 1 : 0; });
        return idle;
    }

  private:
    double& at(int index) { return values_[static_cast<std::size_t>(index)]; }
    std::vector<double>::iterator first_count() { return ranks_with_gradient() - form_.counts; }
    std::vector<double>::iterator ranks_with_gradient() {
        return values_.end() - static_cast<std::ptrdiff_t>(form_.entries);
    }

    Form form_;
    std::vector<double> values_;
};

} // namespace lockstep::train
