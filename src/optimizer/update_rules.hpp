#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "update_rule.hpp"

namespace lockstep::train {

/// A value of optimizer.name, with all that depends on it. The keys that a rule reads stand in
/// config/needs.hpp.
struct RuleKind {
    std::string_view name;
    /// Names the arrays of its state, which may depend on the other keys.
    std::vector<std::string> (*state_names)(config::Optimizer const& options);
    /// Rules with the same word mean the same by their state, and take it over from each other.
    std::string_view state;
    std::unique_ptr<UpdateRule> (*make)(config::Optimizer const& options, Layout const& layout,
                                        std::vector<Shard> const& shards);
};

std::span<RuleKind const> rule_kinds();

/// `name`: one that the deck allows.
RuleKind const& rule_kind(std::string const& name);

} // namespace lockstep::train
