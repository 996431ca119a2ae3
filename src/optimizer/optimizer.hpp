#pragma once

#include "arena/layout.hpp"
#include "lockstep/config/deck.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "update_step.hpp"

namespace lockstep::train {

class UpdateRule;

/// Names of the arrays of state, each of the arena's size over all ranks: "exp_avg", …, "first"
/// where the weights are pulled to the first ones, and "ema" where they are averaged.
std::vector<std::string> state_names(config::Optimizer const& options);

/// Whether what one optimizer keeps besides the averaged weights means the same to another.
bool share_state(std::string const& name, std::string const& other);

/// The update of the ranges of the arena that one rank owns: no other rank holds their state, so
/// time and memory of the update fall with the number of ranks. The bits do not depend on how the
/// arena is cut: ranges end on reduction blocks, and norms are summed over reduction blocks in a
/// fixed tree.
class SliceOptimizer {
  public:
    /// `owned`: in ascending order. Averages begin at `parameters`, the whole arena, on whose
    /// device the state lies.
    ///
    /// Throws  Error 64 as entry_updates
    SliceOptimizer(config::Optimizer const& options, Layout const& layout,
                   torch::Tensor const& parameters, std::vector<Range> owned);
    ~SliceOptimizer();
    SliceOptimizer(SliceOptimizer&&) noexcept;

    std::vector<std::string> const& state_names() const noexcept { return names_; }
    /// This rank's part of a state array: its ranges, one after the other.
    torch::Tensor const& state(std::size_t which) const { return states_.at(which); }
    std::vector<Range> const& owned() const noexcept { return owned_; }

    /// Adds the pull to the first weights to the gradients, clips the sum and adds the correction,
    /// where there are any; then does one step of the rule: AdamW (Loshchilov, Hutter, arXiv
    /// 1711.05101), Adam (Kingma, Ba, arXiv 1412.6980) with decay in the gradient, SGD with
    /// momentum as torch defines it, LARS (You, Gitman, Ginsburg, arXiv 1708.03888) or LAMB (You et
    /// al., arXiv 1904.00962); then updates the averaged weights. Leaves the gradients of the owned
    /// ranges undefined.
    ///
    /// Shape       parameters, gradients [layout.size], of which the owned ranges are used
    /// Collective  for lars and lamb, and where a sum is clipped: they call step.gather
    void update(torch::Tensor const& parameters, torch::Tensor const& gradients,
                UpdateStep const& step);

    /// Updates these entries, too, which the layout says are trained now; `steps` of the rule were
    /// done before, and do not count for their bias correction.
    void begin_later(Layout const& layout, std::vector<std::size_t> const& entries,
                     std::int64_t steps);

    /// Adds this to the mean gradient in every step from now on.
    ///
    /// Shape  correction [layout.size], of which the owned ranges are used
    void set_correction(torch::Tensor const& correction);

    bool averages() const noexcept { return options_.ema > 0; }
    /// Whether a state array begins as a copy of the weights.
    bool copies_weights(std::size_t which) const;
    /// Sets such an array to these parameters.
    ///
    /// Shape  parameters [layout.size], of which the owned ranges are used
    void begin_copy(std::size_t which, torch::Tensor const& parameters) const;
    /// Writes the averaged weights of the owned ranges.
    ///
    /// Shape  parameters [layout.size]
    void write_average(torch::Tensor const& parameters) const;

  private:
    torch::Tensor const& average() const { return states_.back(); }
    void make_rule(Layout const& layout, std::vector<std::int64_t> const& begun_after);
    /// Calls action(first in the arena, first in the state, elements) for each owned range.
    template <class Action>
    void for_each_owned(Action const& action) const;
    void update_average(torch::Tensor const& parameters);
    void pull_to_first(torch::Tensor const& parameters, torch::Tensor const& gradients,
                       double divisor) const;
    double norm_of(torch::Tensor const& gradients, UpdateStep const& step) const;

    config::Optimizer options_;
    std::vector<Range> owned_;
    std::vector<std::string> names_;
    std::vector<torch::Tensor> states_;
    torch::Tensor correction_; ///< of the owned ranges, one after the other; undefined: none
    std::unique_ptr<UpdateRule> rule_;
};

} // namespace lockstep::train
