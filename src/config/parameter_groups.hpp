#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::config {

/// Parameters with a learning rate or a weight decay of their own.
struct ParameterGroup {
    std::string pattern;
    double rate = 1;             ///< that multiplies the learning rate
    std::optional<double> decay; ///< in place of optimizer.weight-decay
};

/// The groups of a text such as "head.* rate 10 decay 0, features.* rate 0.1"; "none" has none.
/// Nothing for any other text.
std::optional<std::vector<ParameterGroup>> parameter_groups(std::string const& text);

} // namespace lockstep::config
