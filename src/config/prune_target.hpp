#pragma once

#include <optional>
#include <string>

namespace lockstep::config {

/// The share of a model's multiply-adds that remains according to prune.target: 0.5 of "macs 0.5".
/// Nothing for any other text, or a share that is not between 0 and 1.
std::optional<double> prune_target(std::string const& text);

} // namespace lockstep::config
