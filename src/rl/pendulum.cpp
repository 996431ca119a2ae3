#include "rl/draws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "environments.hpp"

namespace lockstep::rl {

namespace {

/// A pendulum that is to stand upright, by a torque that alone cannot lift it; gymnasium's
/// Pendulum-v1.
class Pendulum : public Environment {
  public:
    Spaces const& spaces() const override { return spaces_; }

    void reset(std::uint64_t key) override {
        Draws draws(key);
        state_ = {draws.uniform(-std::numbers::pi, std::numbers::pi), draws.uniform(-1, 1)};
    }

    Outcome step(std::span<float const> action) override {
        constexpr double gravity = 10;
        constexpr double seconds = 0.05;
        auto& [angle, speed] = state_;
        double const torque = std::clamp<double>(action[0], -2, 2);
        double const off = std::remainder(angle, 2 * std::numbers::pi); // from upright
        double const cost = off * off + 0.1 * speed * speed + 0.001 * torque * torque;
        speed += (3 * gravity / 2 * std::sin(angle) + 3 * torque) * seconds;
        speed = std::clamp(speed, -8.0, 8.0);
        angle += speed * seconds;
        return {.reward = -cost};
    }

    void observe(std::span<float> into) const override {
        into[0] = static_cast<float>(std::cos(state_[0]));
        into[1] = static_cast<float>(std::sin(state_[0]));
        into[2] = static_cast<float>(state_[1]);
    }

    std::span<double> state() override { return state_; }

  private:
    Spaces spaces_{.observation = 3, .actions = 1, .continuous = true, .longest_episode = 200};
    std::array<double, 2> state_{}; ///< angle, 0 is upright; and its speed
};

} // namespace

EnvironmentKind pendulum_kind() {
    return {"pendulum",
            "hold a pendulum upright with a weak torque; gymnasium's Pendulum-v1",
            {},
            [](EnvironmentSource const&) {
                return [](Period) { return std::make_unique<Pendulum>(); };
            }};
}

} // namespace lockstep::rl
