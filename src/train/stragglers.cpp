#include "stragglers.hpp"

#include "comm/collectives.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {
constexpr double min_computed = 1e-3; ///< of a step that others compute
} // namespace

Waits waits_of_ranks(comm::Communicator const& world, double own_s) {
    if (world.size() == 1) {
        return {.sum_s = own_s, .min_s = own_s};
    }
    constexpr std::int64_t ranks = std::int64_t{1} << 21; // beside 2^42 microseconds
    auto const own = static_cast<std::int64_t>(1e6 * own_s) * ranks + world.rank();
    auto const min = comm::all_reduce(world, own, comm::Reduce::minimum);
    return {.ranks = world.size(),
            .sum_s = comm::all_reduce(world, own_s, comm::Reduce::sum),
            .min_s = 1e-6 * static_cast<double>(min / ranks),
            .min_rank = static_cast<int>(min % ranks)};
}

void Stragglers::add(double waited_s, double step_s) {
    waited_s_ += waited_s;
    step_s_ += step_s;
    ++steps_;
}

Stragglers::Report Stragglers::report(Waits const& waits) {
    Report report;
    if (waits.ranks > 1 && steps_ > 0) {
        auto const others = (waits.sum_s - waits.min_s) / (waits.ranks - 1);
        auto const late_s = others - waits.min_s;
        if (late_s > min_share * step_s_) {
            report.rank = waits.min_rank;
            report.late_s = late_s / static_cast<double>(steps_);
            report.factor = step_s_ / std::max(step_s_ - late_s, min_computed * step_s_);
        }
    }
    last_.push_back({report.rank, steps_});
    report.stays = stays(report.rank) && told_.insert(report.rank).second;
    waited_s_ = 0;
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
