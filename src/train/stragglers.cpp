#include "train/stragglers.hpp"

#include <algorithm>
#include <numeric>

namespace lockstep::train {

void Stragglers::add(std::span<double const> waited_s, double step_s) {
    waited_s_.resize(waited_s.size());
    told_.resize(waited_s.size());
    for (std::size_t rank = 0; rank < waited_s.size(); ++rank) {
        waited_s_[rank] += waited_s[rank];
    }
    step_s_ += step_s;
    ++steps_;
}

Stragglers::Report Stragglers::report() {
    Report report;
    if (waited_s_.size() > 1 && steps_ > 0) {
        auto const least = std::min_element(waited_s_.begin(), waited_s_.end());
        auto const all = std::accumulate(waited_s_.begin(), waited_s_.end(), 0.0);
        auto const others = (all - *least) / static_cast<double>(waited_s_.size() - 1);
        auto const late_s = others - *least;
        if (late_s > min_share * step_s_) {
            report.rank = static_cast<int>(least - waited_s_.begin());
            report.late_s = late_s / static_cast<double>(steps_);
        }
    }
    bool const again = report.rank == last_;
    reports_ = again ? reports_ + 1 : 1;
    reported_steps_ = again ? reported_steps_ + steps_ : steps_;
    last_ = report.rank;
    if (report.rank >= 0 && reports_ >= min_reports && reported_steps_ >= min_steps &&
        !told_[static_cast<std::size_t>(report.rank)]) {
        report.stays = told_[static_cast<std::size_t>(report.rank)] = true;
    }
    std::fill(waited_s_.begin(), waited_s_.end(), 0);
    step_s_ = 0;
    steps_ = 0;
    return report;
}

} // namespace lockstep::train
