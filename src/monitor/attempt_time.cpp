#include "monitor/attempt_time.hpp"

#include "base/text.hpp"
#include "base/utc_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::monitor {

bool AttemptTime::is_recorded() const {
    std::array const all{seconds,      startup_s,    productive_s, lost_s,
                         checkpoint_s, validation_s, silent_s};
    return ranks > 0 &&
           std::ranges::all_of(all, [](double one) { return one >= 0 && std::isfinite(one); });
}

double AttemptTime::begin() const {
    return utc_seconds(start) - setup_s;
}

namespace {

std::string retired_text(JsonLine const& line) {
    std::vector<std::string> words;
    for (auto const& each : line.records("retired")) {
        words.push_back(concat(each.text("host"), " is left out: ", each.text("evidence")));
    }
    return joined(words, "; ");
}

} // namespace

AttemptTime attempt_time(JsonLine const& line) {
    return {.attempt = line.text("attempt"),
            .start = line.text("start"),
            .end = line.text("end"),
            .job = line.text("job"),
            .launch = line.text("launch"),
            .retired = retired_text(line),
            .reason = line.text("reason"),
            .restart = line.whole("restart", 0),
            .ranks = line.whole("ranks", 0),
            .first_step = line.whole("first_step", 0),
            .last_step = line.whole("last_step", 0),
            .lost_steps = line.whole("lost_steps", 0),
            .setup_s = line.number("setup_s"),
            .seconds = line.number("seconds"),
            .waited_s = line.number("waited_s"),
            .startup_s = line.number("startup_s"),
            .productive_s = line.number("productive_s"),
            .lost_s = line.number("lost_s"),
            .checkpoint_s = line.number("checkpoint_s"),
            .validation_s = line.number("validation_s"),
            .silent_s = line.number("silent_s")};
}

bool continues(AttemptTime const& before, AttemptTime const& next) {
    bool const by_job =
        !next.job.empty() && next.job == before.job && next.restart == before.restart;
    bool const by_launch = !next.launch.empty() && next.launch == before.launch;
    std::array const in_order{"finished", "already finished", "paused", "stopped"};
    return (by_job || by_launch) && std::ranges::find(in_order, before.reason) == in_order.end();
}

} // namespace lockstep::monitor
