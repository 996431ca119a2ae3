#include "environments.hpp"
namespace lockstep::rl {
EnvironmentKind trading_kind() {
    return {};
}
} // namespace lockstep::rl
