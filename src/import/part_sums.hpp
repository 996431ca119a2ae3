#pragma once

#include "lockstep/comm/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "join.hpp"
#include "part.hpp"
#include "spread.hpp"

namespace lockstep::import {

/// Totals over the parts of an import. A part's numbers are zero on the ranks that do not have it,
/// so that sums over ranks are exact.
class PartSums {
  public:
    PartSums() = default;
    PartSums(JoinPlan const& plan, std::size_t sets);

    /// Counts a part that this rank has. Not collective.
    void count(std::size_t number, PartFile const& file, ImportPart const& part);

    /// Collective  over `comm`, once all parts are counted; before anything that follows
    void sum_over_ranks(comm::Communicator const& comm);

    std::int64_t samples(std::size_t part) const { return samples_[part]; }
    /// By class.
    std::vector<std::int64_t> class_counts(std::size_t set) const;
    /// Messages, sorted.
    std::vector<std::string> const& skipped() const { return skipped_; }
    ImportNotes const& notes() const { return notes_; }
    /// Sets the plan's mean and standard deviation to those of the first set, which is the training
    /// set where there is one: the other sets are normalised by them, too. Those of u8 are in units
    /// of value / 255.
    void give_moments(JoinPlan& plan) const;

  private:
    std::size_t classes_ = 0;
    std::vector<std::int64_t> samples_;
    std::vector<std::int64_t> class_counts_; ///< [sets, classes]
    std::vector<Spread> spreads_;            ///< [parts, channels]
    std::vector<std::string> skipped_;
    ImportNotes notes_;
};

} // namespace lockstep::import
