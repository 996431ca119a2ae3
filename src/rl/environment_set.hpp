#pragma once

#include "lockstep/rl/environment.hpp"

namespace lockstep::rl {

/// Statistics of episodes that have ended.
struct Episodes {
    double count = 0;
    double return_sum = 0;
    double return_minimum = 0; ///< of at least one episode
    double return_maximum = 0;
    double length_sum = 0; ///< steps

    void add(double reward_sum, double length);
    void add(Episodes const& other);
};

/// The environments of one replica, which step together; each begins its next episode when one
/// ends. An episode is drawn from (seed, replica, environment, episode), so it is the same on any
/// rank and after any restart.
class EnvironmentSet {
  public:
    struct Options {
        EnvironmentMaker const& make;
        Period period = Period::training;
        std::int64_t environments = 1;
        std::uint64_t seed = 0;
        std::int64_t replica = 0;
    };

    explicit EnvironmentSet(Options const& parts);

    std::int64_t size() const { return static_cast<std::int64_t>(environments_.size()); }
    Spaces const& spaces() const { return environments_.front()->spaces(); }

    /// One step of all environments. Where an episode was cut off, `last_seen` gets the observation
    /// that it ended with; `observe` shows the next one's first.
    ///
    /// Shape   actions [environments, action_size]; outcomes [environments]; last_seen
    ///         [environments, observation]
    /// Throws  Error 65 when a reward or an observation is not finite
    void step(std::span<float const> actions, std::span<Outcome> outcomes,
              std::span<float> last_seen);

    /// Shape  into [environments, observation]
    void observe(std::span<float> into) const;
    /// Whether nothing has been done yet in an environment's episode.
    bool at_start(std::int64_t environment) const;
    /// A key for random numbers in an environment's next step.
    std::uint64_t step_key(std::int64_t environment) const;

    /// Episodes that ended since the last call of `forget_episodes`.
    Episodes const& episodes() const { return episodes_; }
    void forget_episodes() { episodes_ = {}; }
    /// Number of episodes that ended since the beginning.
    double episodes_ever() const;

    /// Everything that changes, as numbers.
    std::int64_t state_size() const;
    void save(std::span<double> into) const; ///< [state_size]
    void restore(std::span<double const> from);

  private:
    struct Running {
        double episode = 0;
        double steps = 0;
        double reward_sum = 0;
    };

    void begin(std::size_t environment);
    std::uint64_t key(std::size_t environment, std::uint64_t what) const;
    [[noreturn]] void throw_not_finite(std::size_t environment, char const* what) const;

    std::uint64_t seed_;
    std::uint64_t replica_;
    std::vector<std::unique_ptr<Environment>> environments_;
    std::vector<Running> running_;
    Episodes episodes_;
};

} // namespace lockstep::rl
