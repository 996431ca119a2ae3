#include "rl/draws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "environments.hpp"

namespace lockstep::rl {

namespace {

using Motion = std::array<double, 4>; ///< two angles and their speeds

constexpr double pi = std::numbers::pi;

/// How the joints move under `torque` (Sutton, Barto, "Reinforcement learning", section 11.3):
/// links of length and mass 1, whose centres lie in their middle.
Motion change(Motion const& s, double torque) {
    constexpr double gravity = 9.8;
    constexpr double middle = 0.5;
    auto const [first, second, first_speed, second_speed] = s;
    double const d1 = middle * middle + (1 + middle * middle + 2 * middle * std::cos(second)) + 2;
    double const d2 = middle * middle + middle * std::cos(second) + 1;
    double const phi2 = middle * gravity * std::cos(first + second - pi / 2);
    double const phi1 = -middle * (second_speed * second_speed) * std::sin(second) -
                        2 * middle * second_speed * first_speed * std::sin(second) +
                        (middle + 1) * gravity * std::cos(first - pi / 2) + phi2;
    double const second_turn =
        (torque + d2 / d1 * phi1 - middle * (first_speed * first_speed) * std::sin(second) - phi2) /
        (middle * middle + 1 - d2 * d2 / d1);
    double const first_turn = -(d2 * second_turn + phi1) / d1;
    return {first_speed, second_speed, first_turn, second_turn};
}

Motion moved(Motion from, Motion const& by, double factor) {
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] += factor * by[i];
    }
    return from;
}

double wrapped(double angle) {
    while (angle > pi) {
        angle -= 2 * pi;
    }
    while (angle < -pi) {
        angle += 2 * pi;
    }
    return angle;
}

/// Two links that hang from a joint, driven at the one between them, are to reach as high as one
/// of them is long; gymnasium's Acrobot-v1.
class Acrobot : public Environment {
  public:
    Spaces const& spaces() const override { return spaces_; }

    void reset(std::uint64_t key) override {
        Draws draws(key);
        for (auto& each : state_) {
            each = static_cast<float>(draws.uniform(-0.1, 0.1));
        }
    }

    Outcome step(std::span<float const> action) override {
        constexpr double seconds = 0.2;
        double const torque = static_cast<double>(action[0]) - 1;
        // One step of Runge and Kutta's method of fourth order.
        auto const k1 = change(state_, torque);
        auto const k2 = change(moved(state_, k1, seconds / 2), torque);
        auto const k3 = change(moved(state_, k2, seconds / 2), torque);
        auto const k4 = change(moved(state_, k3, seconds), torque);
        for (std::size_t i = 0; i < state_.size(); ++i) {
            state_[i] += seconds / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
        }
        state_[0] = wrapped(state_[0]);
        state_[1] = wrapped(state_[1]);
        state_[2] = std::clamp(state_[2], -4 * pi, 4 * pi);
        state_[3] = std::clamp(state_[3], -9 * pi, 9 * pi);
        bool const up = -std::cos(state_[0]) - std::cos(state_[1] + state_[0]) > 1;
        return {.reward = up ? 0.0 : -1.0, .terminated = up};
    }

    void observe(std::span<float> into) const override {
        std::array const seen{std::cos(state_[0]), std::sin(state_[0]), std::cos(state_[1]),
                              std::sin(state_[1]), state_[2],           state_[3]};
        std::transform(seen.begin(), seen.end(), into.begin(),
                       [](double value) { return static_cast<float>(value); });
    }

    std::span<double> state() override { return state_; }

  private:
    Spaces spaces_{.observation = 6, .actions = 3, .longest_episode = 500};
    Motion state_{};
};

} // namespace

EnvironmentKind acrobot_kind() {
    return {
        "acrobot", "swing two links up; gymnasium's Acrobot-v1", {}, [](EnvironmentSource const&) {
            return [](Period) { return std::make_unique<Acrobot>(); };
        }};
}

} // namespace lockstep::rl
