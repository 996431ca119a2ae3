#include "suspects.hpp"

#include "base/text.hpp"
#include "checkpoint/store.hpp"

#include <algorithm>
#include <utility>

namespace lockstep::trials {

Suspects::Suspects(search::Study const& study, std::filesystem::path directory)
    : study_(study), directory_(std::move(directory)) {}

std::optional<search::Outcome> Suspects::failure(search::Job const& job) {
    auto const step = saved_step(job.trial);
    auto const deaths = study_.deaths(job.trial, step);
    auto const max_deaths = std::max<std::int64_t>(study_.settings().retries, 1);
    if (deaths > max_deaths) {
        return search::Outcome{.trial = job.trial,
                               .share = job.share,
                               .code = static_cast<int>(ExitCode::rank_lost),
                               .message =
                                   concat("the job died ", deaths,
                                          " times in a row while this trial ran without writing a "
                                          "checkpoint; the last time, no other trial was running"),
                               .step = std::max<std::int64_t>(step, 0)};
    }
    if (deaths == max_deaths) {
        alone_.insert(job.trial);
    }
    return std::nullopt;
}

void Suspects::release_saved() {
    std::erase_if(alone_, [this](std::int64_t trial) {
        return study_.deaths(trial, saved_step(trial)) == 0;
    });
}

std::int64_t Suspects::saved_step(std::int64_t trial) const {
    auto const checkpoints = directory_ / search::trial_directory(trial) / "checkpoints";
    auto const list = checkpoint::Store(checkpoints, 1).list();
    return list.empty() ? -1 : list.front().step;
}

} // namespace lockstep::trials
