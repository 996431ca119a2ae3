#pragma once

#include "lockstep/rl/environment.hpp"

namespace lockstep::rl {

EnvironmentKind acrobot_kind();
EnvironmentKind cart_pole_kind();
EnvironmentKind masked_cart_pole_kind();
EnvironmentKind pendulum_kind();
EnvironmentKind trading_kind();

} // namespace lockstep::rl
