// Strategies that give few trials the whole length: successive halving (K. Jamieson, A. Talwalkar,
// AISTATS 2016) and Hyperband (L. Li et al., JMLR 18, 2018).

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "rungs.hpp"
#include "strategies.hpp"

namespace lockstep::search {

namespace {

/// One or more brackets: of a bracket's trials one in `reduction` goes from each rung to the next,
/// once all of the rung are done. Brackets do not wait for each other.
class Halving : public Strategy {
  public:
    struct Bracket {
        std::int64_t trials = 0;
        std::vector<double> rungs;
    };

    Halving(Settings const& settings, Space const& space, std::vector<Bracket> const& brackets)
        : reduction_(settings.reduction) {
        std::int64_t trial = 0;
        for (auto const& bracket : brackets) {
            State state{bracket.rungs, 0, bracket.trials, {}};
            for (std::int64_t n = 0; n < bracket.trials; ++n, ++trial) {
                bracket_of_[trial] = states_.size();
                auto const seed = static_cast<std::uint64_t>(settings.seed);
                queue_.push_back(
                    {.trial = trial,
                     .share = bracket.rungs.front(),
                     .point = space.draw_point(seed, static_cast<std::uint64_t>(trial))});
            }
            states_.push_back(std::move(state));
        }
    }

    std::optional<Job> ask() override {
        if (queue_.empty()) {
            return std::nullopt;
        }
        auto job = std::move(queue_.front());
        queue_.pop_front();
        return job;
    }

    void tell(Result const& result) override {
        auto& state = states_[bracket_of_.at(result.trial)];
        state.scored.emplace_back(result.losses.front(), result.trial);
        if (--state.open > 0) {
            return;
        }
        if (++state.rung == state.rungs.size()) {
            return;
        }
        std::ranges::sort(state.scored);
        auto const kept =
            std::max<std::size_t>(state.scored.size() / static_cast<std::size_t>(reduction_), 1);
        state.scored.resize(kept);
        std::erase_if(state.scored, [](auto const& each) { return std::isinf(each.first); });
        for (auto const& [loss, trial] : state.scored) {
            queue_.push_back({.trial = trial, .share = state.rungs[state.rung]});
        }
        state.open = static_cast<std::int64_t>(state.scored.size());
        state.rung = state.scored.empty() ? state.rungs.size() : state.rung;
        state.scored.clear();
    }

    bool is_finished() const override {
        return std::ranges::all_of(
            states_, [](auto const& state) { return state.rung == state.rungs.size(); });
    }

  private:
    struct State {
        std::vector<double> rungs;
        std::size_t rung = 0;
        std::int64_t open = 0; ///< jobs of the rung that are not done
        std::vector<Scored> scored;
    };

    std::int64_t reduction_;
    std::vector<State> states_;
    std::map<std::int64_t, std::size_t> bracket_of_;
    std::deque<Job> queue_;
};

} // namespace

std::unique_ptr<Strategy> make_halving(Settings const& settings, Space const& space) {
    return std::make_unique<Halving>(
        settings, space,
        std::vector<Halving::Bracket>{
            {settings.trials, rungs_of(settings, settings.minimum_share)}});
}

std::unique_ptr<Strategy> make_hyperband(Settings const& settings, Space const& space) {
    auto const rungs = rungs_of(settings, settings.minimum_share);
    std::vector<Halving::Bracket> brackets;
    for (auto s = rungs.size(); s-- > 0;) {
        auto const trials =
            std::ceil(static_cast<double>(rungs.size()) / static_cast<double>(s + 1) *
                      std::pow(static_cast<double>(settings.reduction), s));
        brackets.push_back({static_cast<std::int64_t>(trials),
                            {rungs.end() - static_cast<std::ptrdiff_t>(s) - 1, rungs.end()}});
    }
    return std::make_unique<Halving>(settings, space, brackets);
}

} // namespace lockstep::search
