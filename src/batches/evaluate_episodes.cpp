#include "evaluate_episodes.hpp"

#include "base/clock.hpp"
#include "base/random.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "comm/replica_tree.hpp"
#include "device/autocast.hpp"
#include "device/tensor_span.hpp"
#include "nn/evaluation_mode.hpp"
#include "task/actions.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

namespace {

constexpr std::int64_t together = 10;

/// The results of all episodes; each is played on one rank, and elsewhere zero.
struct Results {
    std::vector<double> returns;
    std::vector<double> lengths;
};

std::vector<std::int64_t> shape_of(std::int64_t count, EpisodeOptions const& options) {
    auto shape = options.observation_shape;
    shape.insert(shape.begin(), {count, 1});
    return shape;
}

/// The first episode of each environment of a group.
void play(nn::Policy& policy, rl::EnvironmentMaker const& make, EpisodeOptions const& options,
          std::int64_t group, Results& results) {
    auto const first = group * together;
    auto const count = std::min(together, options.episodes - first);
    rl::EnvironmentSet set({.make = make,
                            .period = rl::Period::evaluation,
                            .environments = count,
                            .seed = options.seed,
                            .replica = group});
    auto const width = static_cast<std::size_t>(count);
    auto const& spaces = set.spaces();
    auto const size = static_cast<std::size_t>(spaces.action_size());
    auto const seen = torch::zeros(shape_of(count, options));
    auto const unused = torch::zeros_like(seen);
    std::vector<float> actions(width * size);
    std::vector<rl::Outcome> outcomes(width);
    std::vector<char> over(width, 0);
    auto state = torch::zeros({count, policy.state_size()}, options.device);
    for (bool first_step = true; std::count(over.begin(), over.end(), 0) > 0; first_step = false) {
        set.observe(span_of(seen));
        auto const judged = [&] {
            Autocast const autocast(options.precision, options.device);
            return nn::judge(policy,
                             {seen.to(options.device, torch::kFloat32, false, true),
                              torch::full({count, 1}, first_step ? 1.0 : 0.0, options.device),
                              state},
                             spaces.parameters());
        }();
        state = judged.state;
        auto const parameters = judged.actions.to(torch::kCPU, torch::kFloat32).contiguous();
        auto const many = static_cast<std::size_t>(spaces.parameters());
        for (std::size_t e = 0; e < width; ++e) {
            rl::Draws draws(set.step_key(static_cast<std::int64_t>(e)));
            task::choose_action(span_of(parameters).subspan(e * many, many), spaces.continuous,
                                options.greedy ? nullptr : &draws,
                                std::span(actions).subspan(e * size, size));
        }
        set.step(actions, outcomes, span_of(unused));
        for (std::size_t e = 0; e < width; ++e) {
            auto const episode = static_cast<std::size_t>(first) + e;
            if (over[e] == 0) {
                results.returns[episode] += outcomes[e].reward;
                results.lengths[episode] += 1;
                over[e] = outcomes[e].terminated || outcomes[e].truncated ? 1 : 0;
            }
        }
    }
}

task::Metrics metrics_of(Results const& results) {
    auto const count = static_cast<double>(results.returns.size());
    auto const mean = comm::tree_sum(results.returns) / count;
    std::vector<double> squares;
    for (auto const each : results.returns) {
        squares.push_back((each - mean) * (each - mean));
    }
    auto const [min, max] = std::minmax_element(results.returns.begin(), results.returns.end());
    return {{"return", mean},
            {"return_deviation", std::sqrt(comm::tree_sum(squares) / count)},
            {"return_minimum", *min},
            {"return_maximum", *max},
            {"length", comm::tree_sum(results.lengths) / count}};
}

} // namespace

std::optional<Evaluation> evaluate_episodes(comm::Communicator const& world, nn::Policy& policy,
                                            rl::EnvironmentMaker const& make,
                                            EpisodeOptions const& options) {
    Stopwatch const watch;
    torch::NoGradGuard const no_grad;
    auto const groups = (options.episodes + together - 1) / together;
    auto const rounds = (groups + world.size() - 1) / world.size();
    auto const count = static_cast<std::size_t>(options.episodes);
    Results results{std::vector<double>(count, 0), std::vector<double>(count, 0)};
    nn::EvaluationMode const evaluation(policy);
    bool stopped = false;
    for (std::int64_t round = 0; round < rounds && !stopped; ++round) {
        comm::agree(world, "evaluation", [&] {
            comm::progressed(world);
            auto const group = round * world.size() + world.rank();
            if (group < groups) {
                evaluation.begin(
                    random_key(options.seed, Stream::dropout, {static_cast<std::uint64_t>(group)}));
                play(policy, make, options, group, results);
            }
        });
        stopped = options.stop && options.stop(round + 1, rounds);
    }
    if (stopped) {
        return std::nullopt;
    }
    // Each episode is non-zero on one rank only, so these sums are exact.
    comm::all_reduce(world, std::span(results.returns), comm::Reduce::sum);
    comm::all_reduce(world, std::span(results.lengths), comm::Reduce::sum);
    auto metrics = metrics_of(results);
    return Evaluation{-metrics["return"], options.episodes, std::move(metrics), watch.seconds()};
}

} // namespace lockstep::train
