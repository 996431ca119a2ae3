#pragma once

#include "base/finding.hpp"

#include <string>
#include <vector>

namespace lockstep::measure {

/// Prints findings as they are made, on the rank that speaks, and counts them by colour.
class CheckReport {
  public:
    /// `json`: one object a line. `speaks`: whether this rank prints.
    CheckReport(bool json, bool speaks);

    void add(Finding const& finding);
    void add(std::vector<Finding> const& findings);
    void green(std::string topic, std::string what);

    Colour colour() const noexcept { return worst_; }
    /// "fit: 12 green, 1 yellow"
    void print_summary() const;

  private:
    bool json_;
    bool speaks_;
    bool colourful_;
    Colour worst_ = Colour::green;
    std::vector<int> counts_ = {0, 0, 0}; ///< by colour
};

} // namespace lockstep::measure
