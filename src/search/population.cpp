// Population based training (M. Jaderberg et al., arXiv 1711.09846): after each interval the worst
// fifth takes over the state of one of the best fifth and changes its values a little.

#include <algorithm>
#include <cmath>
#include <deque>

#include "draw.hpp"
#include "strategies.hpp"

namespace lockstep::search {

namespace {

/// Who takes over another's state is a new trial, whose parent is known.
class Pbt : public Strategy {
  public:
    Pbt(Settings const& settings, Space const& space) : settings_(settings), space_(space) {
        for (std::int64_t n = 0; n < settings.population; ++n) {
            auto const trial = static_cast<std::int64_t>(points_.size());
            points_.push_back(space.draw_point(seed(), static_cast<std::uint64_t>(trial)));
            members_.push_back({trial, 0});
            queue_.push_back({.trial = trial, .share = share(), .point = points_.back()});
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
        std::ranges::find(members_, result.trial, &Member::trial)->loss = result.losses.front();
        if (++told_ < members_.size()) {
            return;
        }
        told_ = 0;
        if (++interval_ < settings_.intervals) {
            exploit();
        }
    }

    bool is_finished() const override { return interval_ == settings_.intervals; }

  private:
    struct Member {
        std::int64_t trial;
        double loss;
    };

    std::uint64_t seed() const { return static_cast<std::uint64_t>(settings_.seed); }
    double share() const {
        return static_cast<double>(interval_ + 1) / static_cast<double>(settings_.intervals);
    }

    /// New trials stand before those that continue in the queue: their parents' checkpoints are put
    /// by before the parents write others.
    void exploit() {
        auto const before =
            static_cast<double>(interval_) / static_cast<double>(settings_.intervals);
        std::ranges::sort(members_, [](auto const& a, auto const& b) {
            return std::pair(a.loss, a.trial) < std::pair(b.loss, b.trial);
        });
        auto const fifth = std::max<std::size_t>(members_.size() / 5, 1);
        auto const failed = static_cast<std::size_t>(std::ranges::count_if(
            members_, [](auto const& member) { return std::isinf(member.loss); }));
        auto const replaced = std::max(fifth, failed);
        auto const parents = std::min(fifth, members_.size() - failed);
        std::vector<Job> fresh;
        for (auto at = members_.size() - replaced; at < members_.size(); ++at) {
            auto const trial = static_cast<std::uint64_t>(points_.size());
            if (parents == 0) { // nothing to take over
                fresh.push_back({.trial = static_cast<std::int64_t>(trial),
                                 .share = share(),
                                 .point = space_.draw_point(seed(), trial)});
            } else {
                auto const pick = draw(seed(), {trial, 0}) * static_cast<double>(parents);
                auto const& parent = members_[static_cast<std::size_t>(pick)];
                fresh.push_back({.trial = static_cast<std::int64_t>(trial),
                                 .share = share(),
                                 .point = explored(parent.trial, trial),
                                 .parent = parent.trial,
                                 .parent_share = before});
            }
            points_.push_back(fresh.back().point);
            members_[at] = {static_cast<std::int64_t>(trial), 0};
        }
        queue_.assign(fresh.begin(), fresh.end());
        for (std::size_t at = 0; at + replaced < members_.size(); ++at) {
            queue_.push_back({.trial = members_[at].trial, .share = share()});
        }
    }

    /// Each value a fifth of the space's width up or down; a choice now and then another one.
    Point explored(std::int64_t parent, std::uint64_t trial) const {
        auto const& from = points_[static_cast<std::size_t>(parent)];
        for (std::uint64_t attempt = 0; attempt < 100; ++attempt) {
            Point point = from;
            for (std::uint64_t at = 0; at < point.size(); ++at) {
                auto const random = draw(seed(), {trial, 1, attempt, at});
                if (space_.dimensions()[at].kind == Dimension::Kind::choice) {
                    point[at] = random < 0.2 ? random * 5 : point[at];
                } else {
                    point[at] = std::clamp(point[at] + (random < 0.5 ? -0.1 : 0.1), 0.0, 1.0);
                }
            }
            if (space_.allows(space_.values(point))) {
                return point;
            }
        }
        return from;
    }

    Settings settings_;
    Space const& space_;
    std::vector<Point> points_; ///< by trial
    std::vector<Member> members_;
    std::deque<Job> queue_;
    std::size_t told_ = 0;
    std::int64_t interval_ = 0;
};

} // namespace

std::unique_ptr<Strategy> make_pbt(Settings const& settings, Space const& space) {
    return std::make_unique<Pbt>(settings, space);
}

} // namespace lockstep::search
