#pragma once

#include "search/strategy.hpp"

namespace lockstep::search {

std::unique_ptr<Strategy> make_grid(Settings const& settings, Space const& space);
std::unique_ptr<Strategy> make_random(Settings const& settings, Space const& space);
std::unique_ptr<Strategy> make_sobol(Settings const& settings, Space const& space);
std::unique_ptr<Strategy> make_halving(Settings const& settings, Space const& space);
std::unique_ptr<Strategy> make_hyperband(Settings const& settings, Space const& space);
std::unique_ptr<Strategy> make_asha(Settings const& settings, Space const& space);
std::unique_ptr<Strategy> make_tpe(Settings const& settings, Space const& space);
std::unique_ptr<Strategy> make_nsga2(Settings const& settings, Space const& space);
std::unique_ptr<Strategy> make_pbt(Settings const& settings, Space const& space);

} // namespace lockstep::search
