#pragma once

#include "base/exact_sum.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace lockstep::train {

/// What all ranks tell each other in a step, as sums that are the same in any order, whatever the
/// number of ranks and replicas: the loss, its weight and the task's figures; on how many ranks a
/// signal has arrived; what hinders a copy in memory; rank 0's own values; how two computations of
/// one replica differ; the task's counts; and for each parameter on how many ranks it got a
/// gradient. Which ranks these were is found out afterwards, where it matters.
class StepSums {
  public:
    struct Form {
        int figures = 0; ///< of the task
        int counts = 0;  ///< of the task
        std::size_t entries = 0;

        std::size_t reals() const { return 2 + static_cast<std::size_t>(figures); }
        std::size_t count() const {
            return reals() * exact_sum::values + 4 + static_cast<std::size_t>(counts) + entries;
        }
    };
    static constexpr std::size_t loss = 0;
    static constexpr std::size_t weight = 1;
    static constexpr std::size_t figures = 2; ///< the first

    explicit StepSums(Form const& form) : form_(form), values_(form.count(), 0) {}

    std::span<double> values() { return values_; }
    /// Adds to a real sum, whose total is NaN where a term is not finite.
    void add(std::size_t which, double value) { exact_sum::add(value, sum_of(which)); }
    double total(std::size_t which) { return exact_sum::total(sum_of(which)); }
    std::vector<double> total_figures() {
        std::vector<double> totals;
        for (auto which = figures; which < form_.reals(); ++which) {
            totals.push_back(total(which));
        }
        return totals;
    }
    double& signals() { return *after_reals(); }
    double& hindrances() { return *std::next(after_reals()); }
    /// Sets what only rank 0 knows: whether its minutes have passed, whether a copy in memory is
    /// due, and the steps of a timeline that it was asked for.
    void tell(bool minutes_passed, bool copy_due, std::int64_t profile) {
        *std::next(after_reals(), 2) =
            static_cast<double>(4 * profile + (copy_due ? 2 : 0) + (minutes_passed ? 1 : 0));
    }
    bool minutes_passed() { return told() % 2 != 0; }
    bool copy_due() { return told() / 2 % 2 != 0; }
    std::int64_t profile() { return told() / 4; }

    /// What the rank of a replica adds, and the one that repeats its computation takes away: a
    /// whole number, so that nothing is left where both are the same.
    double& differences() { return *std::next(after_reals(), 3); }

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

    void set_used(std::vector<char> const& used) {
        std::copy(used.begin(), used.end(), ranks_with_gradient());
    }
    /// By entry: whether it got a gradient on no rank.
    std::vector<char> idle() {
        std::vector<char> idle(form_.entries);
        std::transform(ranks_with_gradient(), values_.end(), idle.begin(),
                       [](double ranks) { return ranks == 0 ? 1 : 0; });
        return idle;
    }

  private:
    std::span<double, exact_sum::values> sum_of(std::size_t which) {
        return std::span<double, exact_sum::values>(
            values().subspan(which * exact_sum::values, exact_sum::values));
    }
    std::int64_t told() { return static_cast<std::int64_t>(*std::next(after_reals(), 2)); }
    std::vector<double>::iterator after_reals() {
        return values_.begin() + static_cast<std::ptrdiff_t>(form_.reals() * exact_sum::values);
    }
    std::vector<double>::iterator first_count() { return ranks_with_gradient() - form_.counts; }
    std::vector<double>::iterator ranks_with_gradient() {
        return values_.end() - static_cast<std::ptrdiff_t>(form_.entries);
    }

    Form form_;
    std::vector<double> values_;
};

} // namespace lockstep::train
