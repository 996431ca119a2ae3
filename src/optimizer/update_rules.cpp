#include "optimizer/update_rules.hpp"

#include "base/expects.hpp"

#include <algorithm>
#include <array>

namespace lockstep::train {

namespace {

std::vector<std::string> momentum(config::Optimizer const& options) {
    return options.momentum > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

std::vector<std::string> moments(config::Optimizer const& /*options*/) {
    return {"exp_avg", "exp_avg_sq"};
}

} // namespace

std::span<RuleKind const> rule_kinds() {
    static constexpr std::array kinds{
        RuleKind{"adamw", moments, "moments of gradients", adamw_rule},
        RuleKind{"adam", moments, "moments of gradients", adam_rule},
        RuleKind{"sgd", momentum, "momentum of gradients", sgd_rule},
        RuleKind{"lars", momentum, "momentum of scaled gradients", lars_rule},
        RuleKind{"lamb", moments, "moments of gradients", lamb_rule},
    };
    return kinds;
}

RuleKind const& rule_kind(std::string const& name) {
    auto const found = std::ranges::find(rule_kinds(), name, &RuleKind::name);
    expects(found != rule_kinds().end(), "each value of optimizer.name has a rule");
    return *found;
}

} // namespace lockstep::train
