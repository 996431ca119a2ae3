#include "lockstep/rl/environment.hpp"

#include "base/suggestion.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include "environments.hpp"

namespace lockstep::rl {

std::vector<EnvironmentKind> environment_kinds() {
    return {acrobot_kind(), cart_pole_kind(), masked_cart_pole_kind(), pendulum_kind(),
            trading_kind()};
}

EnvironmentMaker open_environment(std::string const& name, EnvironmentSource const& source) {
    std::vector<std::string> names;
    for (auto const& kind : environment_kinds()) {
        names.push_back(kind.name);
        if (kind.name == name) {
            return kind.open(source);
        }
    }
    throw Error(ExitCode::usage,
                {concat("task.environment = ", name),
                 concat("expected one of ", joined(names, ", ")),
                 suggestion(name, names, "Choose one of them (lockstep tasks lists their keys)")});
}

} // namespace lockstep::rl
