// Halving without waiting: ASHA (L. Li et al., MLSys 2020).

#include <cmath>
#include <set>

#include "rungs.hpp"
#include "strategies.hpp"

namespace lockstep::search {

namespace {

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

std::unique_ptr<Strategy> make_asha(Settings const& settings, Space const& space) {
    return std::make_unique<Asha>(settings, space);
}

} // namespace lockstep::search
