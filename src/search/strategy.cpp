#include "search/strategy.hpp"

#include <map>

#include "strategies.hpp"

namespace lockstep::search {

std::unique_ptr<Strategy> make_strategy(Settings const& settings, Space const& space) {
    using Make = std::unique_ptr<Strategy> (*)(Settings const&, Space const&);
    static std::map<std::string, Make> const makes{
        {"grid", make_grid},       {"random", make_random},       {"sobol", make_sobol},
        {"halving", make_halving}, {"hyperband", make_hyperband}, {"asha", make_asha},
        {"tpe", make_tpe},         {"nsga2", make_nsga2},         {"pbt", make_pbt}};
    return makes.at(settings.strategy)(settings, space);
}

} // namespace lockstep::search
