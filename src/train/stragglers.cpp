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
    last_.push_back({report.rank, steps_});
    if (stays(report.rank) && !told_[static_cast<std::size_t>(report.rank)]) {
        report.stays = told_[static_cast<std::size_t>(report.rank)] = true;
    }
    std::fill(waited_s_.begin(), waited_s_.end(), 0);
    step_s_ = 0;
    steps_ = 0;
    return report;
}

bool Stragglers::stays(int rank) {
    std::int64_t all = 0;
    std::int64_t of_rank = 0;
    std::size_t reports = 0;
    for (auto r = last_.rbegin(); r != last_.rend(); ++r) {
        if (all >= min_steps && reports >= min_reports) {
            last_.erase(last_.begin(), r.base());
            break;
        }
        all += r->steps;
        of_rank += r->rank == rank ? r->steps : 0;
        ++reports;
    }
    return rank >= 0 && all >= min_steps && reports >= min_reports &&
           static_cast<double>(of_rank) >= staying_share * static_cast<double>(all);
}

} // namespace lockstep::train
