#include "rl/draws.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include "environments.hpp"

namespace lockstep::rl {

namespace {

/// A pole on a cart that is pushed left or right (Barto, Sutton, Anderson, "Neuronlike adaptive
/// elements", 1983; equations of R. Florian, 2007), with gymnasium's CartPole-v1's constants and
/// order of operations, so that both have the same bits. Position, speed, angle, angular speed;
/// where `masked`, the speeds are not seen.
class CartPole : public Environment {
  public:
    explicit CartPole(bool masked)
        : spaces_{.observation = masked ? 2 : 4, .actions = 2, .longest_episode = 500} {}

    Spaces const& spaces() const override { return spaces_; }

    void reset(std::uint64_t key) override {
        Draws draws(key);
        for (auto& each : state_) {
            each = draws.uniform(-0.05, 0.05);
        }
    }

    Outcome step(std::span<float const> action) override {
        constexpr double gravity = 9.8;
        constexpr double pole_mass = 0.1;
        constexpr double total_mass = 0.1 + 1.0;
        constexpr double half_length = 0.5;
        constexpr double moment = pole_mass * half_length;
        constexpr double seconds = 0.02;
        auto& [x, speed, angle, turning] = state_;
        double const force = action[0] == 1 ? 10.0 : -10.0;
        double const cosine = std::cos(angle);
        double const sine = std::sin(angle);
        double const push = (force + moment * (turning * turning) * sine) / total_mass;
        double const turn =
            (gravity * sine - cosine * push) /
            (half_length * (4.0 / 3.0 - pole_mass * (cosine * cosine) / total_mass));
        double const pull = push - moment * turn * cosine / total_mass;
        x = x + seconds * speed;
        speed = speed + seconds * pull;
        angle = angle + seconds * turning;
        turning = turning + seconds * turn;
        constexpr double widest = 12 * 2 * std::numbers::pi / 360;
        return {.reward = 1, .terminated = std::abs(x) > 2.4 || std::abs(angle) > widest};
    }

    void observe(std::span<float> into) const override {
        auto const every = spaces_.observation == 2 ? std::size_t{2} : std::size_t{1};
        for (std::size_t i = 0; i < into.size(); ++i) {
            into[i] = static_cast<float>(state_[i * every]);
        }
    }

    std::span<double> state() override { return state_; }

  private:
    Spaces spaces_;
    std::array<double, 4> state_{};
};

EnvironmentMaker maker(bool masked) {
    return [masked](Period) { return std::make_unique<CartPole>(masked); };
}

} // namespace

EnvironmentKind cart_pole_kind() {
    return {"cart-pole",
            "balance a pole on a cart for 500 steps; gymnasium's CartPole-v1",
            {},
            [](EnvironmentSource const&) { return maker(false); }};
}

EnvironmentKind masked_cart_pole_kind() {
    return {"cart-pole-masked",
            "cart-pole, but velocities are not observed",
            {},
            [](EnvironmentSource const&) { return maker(true); }};
}

} // namespace lockstep::rl
