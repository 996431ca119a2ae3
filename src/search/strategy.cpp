#include "search/strategy.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "strategies.hpp"

namespace lockstep::search {

namespace {

struct StrategyKind {
    std::string_view name;
    std::unique_ptr<Strategy> (*make)(Settings const&, Space const&);
};

constexpr std::array<StrategyKind, 9> strategy_kinds{{{"grid", make_grid},
                                                      {"random", make_random},
                                                      {"sobol", make_sobol},
                                                      {"halving", make_halving},
                                                      {"hyperband", make_hyperband},
                                                      {"asha", make_asha},
                                                      {"tpe", make_tpe},
                                                      {"nsga2", make_nsga2},
                                                      {"pbt", make_pbt}}};

} // namespace

std::vector<std::string> strategy_names() {
    std::vector<std::string> names;
    for (auto const& kind : strategy_kinds) {
        names.emplace_back(kind.name);
    }
    return names;
}

std::unique_ptr<Strategy> make_strategy(Settings const& settings, Space const& space) {
    return std::ranges::find(strategy_kinds, settings.strategy, &StrategyKind::name)
        ->make(settings, space);
}

} // namespace lockstep::search
