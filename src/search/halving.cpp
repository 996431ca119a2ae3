// Strategies that give few trials the whole length: successive halving (K. Jamieson, A. Talwalkar,
// AISTATS 2016), Hyperband (L. Li et al., JMLR 18, 2018) and ASHA (L. Li et al., MLSys 2020).

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "strategies.hpp"

namespace lockstep::search {

namespace {

using Scored = std::pair<double, std::int64_t>; ///< loss, trial: of equals the older one is better

/// Shares of the length, the last of them 1.
std::vector<double> rungs_of(Settings const& settings, double first) {
    std::vector<double> rungs{1.0};
    auto const reduction = static_cast<double>(settings.reduction);
    while (rungs.back() / reduction >= first * (1 - 1e-9)) {
        rungs.push_back(rungs.back() / reduction);
    }
    std::ranges::reverse(rungs);
    return rungs;
}

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

/// A trial is promoted as soon as it is among the best of those that have come as far; which these
/// are depends on the order of results.
class Asha : public Strategy {
  public:
    Asha(Settings const& settings, Space const& space)
        : settings_(settings), space_(space), rungs_(rungs_of(settings, settings.minimum_share)),
          scored_(rungs_.size()), promoted_(rungs_.size()) {}

    std::optional<Job> ask() override {
        for (auto rung = rungs_.size() - 1; rung-- > 0;) {
            if (auto const trial = promotable(rung)) {
                promoted_[rung].insert(*trial);
                ++running_;
                return Job{.trial = *trial, .share = rungs_[rung + 1]};
            }
        }
        if (trials_ == settings_.trials) {
            return std::nullopt;
        }
        ++running_;
        auto const trial = trials_++;
        return Job{.trial = trial,
                   .share = rungs_.front(),
                   .point = space_.draw_point(static_cast<std::uint64_t>(settings_.seed),
                                              static_cast<std::uint64_t>(trial))};
    }

    void tell(Result const& result) override {
        --running_;
        for (std::size_t rung = 0; rung < rungs_.size(); ++rung) {
            if (std::abs(rungs_[rung] - result.share) < 1e-9) {
                scored_[rung].emplace(result.losses.front(), result.trial);
            }
        }
    }

    bool is_finished() const override {
        bool more = false;
        for (std::size_t rung = 0; rung + 1 < rungs_.size(); ++rung) {
            more = more || promotable(rung);
        }
        return trials_ == settings_.trials && running_ == 0 && !more;
    }

    bool depends_on_order() const override { return true; }

  private:
    std::optional<std::int64_t> promotable(std::size_t rung) const {
        auto left = scored_[rung].size() / static_cast<std::size_t>(settings_.reduction);
        for (auto const& [loss, trial] : scored_[rung]) {
            if (left-- == 0 || std::isinf(loss)) {
                break;
            }
            if (!promoted_[rung].contains(trial)) {
                return trial;
            }
        }
        return std::nullopt;
    }

    Settings settings_;
    Space const& space_;
    std::vector<double> rungs_;
    std::vector<std::set<Scored>> scored_;
    std::vector<std::set<std::int64_t>> promoted_;
    std::int64_t trials_ = 0;
    std::int64_t running_ = 0;
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

std::unique_ptr<Strategy> make_asha(Settings const& settings, Space const& space) {
    return std::make_unique<Asha>(settings, space);
}

} // namespace lockstep::search
