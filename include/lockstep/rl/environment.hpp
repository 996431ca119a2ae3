#pragma once

#include "lockstep/config/own_keys.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep::rl {

/// The observations that an environment returns, and the actions that it accepts.
struct Spaces {
    std::int64_t observation = 0; ///< numbers of an observation
    std::int64_t actions =
        0; ///< how many there are to choose from; continuous: numbers of an action
    bool continuous = false;          ///< an action is `actions` numbers, not the index of one
    std::int64_t longest_episode = 0; ///< steps after which an episode is cut off
    std::int64_t window = 1;          ///< time steps that an observation shows, the latest last
    /// The names of the numbers, in their order, such as the assets of a market; empty: not named.
    std::vector<std::string> names{};

    /// How many numbers an action consists of.
    std::int64_t action_size() const { return continuous ? actions : 1; }
    /// Parameters of the distribution of actions: a logit for each; continuous: means and
    /// deviations.
    std::int64_t parameters() const { return continuous ? 2 * actions : actions; }
};

/// What a step led to. An episode that is cut off (truncated) is not over: what would have
/// followed still has a value.
struct Outcome {
    double reward = 0;
    bool terminated = false;
    bool truncated = false;
};

/// A world that an agent acts in, one episode at a time; called by one thread at a time.
class Environment {
  public:
    virtual ~Environment() = default;

    virtual Spaces const& spaces() const = 0;
    /// Begins an episode, including the first one, drawn only from `key`.
    virtual void reset(std::uint64_t key) = 0;
    /// The next step of the episode; not called after it has ended. The caller cuts an episode off
    /// after `longest_episode` steps: `truncated` is for other ends. The reward is finite.
    ///
    /// Shape  action [action_size]: the index of an action, as a number; continuous: any numbers
    virtual Outcome step(std::span<float const> action) = 0;
    /// Shape  into [observation], all finite
    virtual void observe(std::span<float> into) const = 0;
    /// The whole state of the episode: an environment into which another's state is copied
    /// continues as that one does. The span always has the same length, and is valid as long as the
    /// environment exists.
    virtual std::span<double> state() = 0;
};

/// What environments may be made from.
struct EnvironmentSource {
    config::OwnValues const& values; ///< keys of the task
    std::string files;               ///< data.train
};

/// What an environment is for: those for training and for evaluation may see different data.
enum class Period { training, evaluation };

using EnvironmentMaker = std::function<std::unique_ptr<Environment>(Period)>;

/// An environment that a deck can name.
struct EnvironmentKind {
    std::string name;
    std::string meaning;
    std::vector<config::OwnKey> keys;
    /// Opens what all its environments share, once; the source does not outlive the call.
    ///
    /// Throws  Error 64 to 66 when its keys or files are wrong
    std::function<EnvironmentMaker(EnvironmentSource const&)> open;
};

/// Environments whose observations are multiplied element by element by `scale` before a policy
/// sees them.
///
/// Shape   scale [observation / window], or [1] for all numbers alike
/// Throws  Error 64, from what is returned, when the shape is another
EnvironmentMaker scaled(EnvironmentMaker environments, std::vector<double> scale);

/// All environments, by name. Exists only in a program built with LOCKSTEP_WITH_RL, as does the
/// function below.
std::vector<EnvironmentKind> environment_kinds();

/// Throws  Error 64 when there is no environment of that name; as EnvironmentKind::open
EnvironmentMaker open_environment(std::string const& name, EnvironmentSource const& source);

} // namespace lockstep::rl
