#include "monitor/effective_time.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::monitor;

namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

/// Shares in per cent, by use: productive, validation, checkpoints, start, repeated steps, waiting,
/// idle ranks, other.
using Shares = std::vector<double>;

struct Row {
    char const* what;
    std::vector<AttemptTime> attempts;
    double allocated_s;
    Shares shares;
    std::int64_t not_recorded = 0;
    std::int64_t unknown_waits = 0;
};

AttemptTime attempt(AttemptTime time) {
    time.attempt = "attempt";
    time.start = "2026-01-31T12:00:00Z";
    return time;
}

std::vector<Row> rows() {
    auto const whole = attempt({.reason = "finished",
                                .ranks = 2,
                                .seconds = 100,
                                .startup_s = 10,
                                .productive_s = 70,
                                .checkpoint_s = 5,
                                .validation_s = 12});
    auto const lost = attempt({.launch = "launch-1",
                               .reason = "failed",
                               .ranks = 4,
                               .seconds = 100,
                               .startup_s = 10,
                               .productive_s = 60,
                               .lost_s = 20,
                               .silent_s = 10});
    auto next = lost;
    next.reason = "finished";
    next.lost_s = 0;
    next.silent_s = 0;
    next.productive_s = 90;
    next.waited_s = 50;
    auto smaller = next;
    smaller.ranks = 3;
    auto by_hand = next;
    by_hand.launch = "";
    auto after_order = lost;
    after_order.reason = "paused";
    auto requeued = next;
    requeued.launch = "";
    requeued.job = "12";
    requeued.restart = 1;
    auto in_job = lost;
    in_job.launch = "";
    in_job.job = "12";
    auto jumped = next;
    jumped.waited_s = none;
    auto old = lost;
    old.seconds = none;
    auto never_stepped = attempt({.reason = "killed", .ranks = 1, .seconds = 8});
    auto estimate = attempt({.reason = "killed",
                             .ranks = 1,
                             .seconds = 50,
                             .startup_s = 10,
                             .productive_s = 60,
                             .lost_s = 20,
                             .validation_s = 8});
    return {
        {"one attempt", {whole}, 200, {70, 12, 5, 10, 0, 0, 0, 3}},
        {"a loss, and the wait for the next", {lost, next}, 1000, {60, 0, 0, 8, 8, 24, 0, 0}},
        {"continued with fewer ranks", {lost, smaller}, 1000, {51, 0, 0, 7, 8, 24, 10, 0}},
        {"a resume by hand, the next day", {lost, by_hand}, 800, {75, 0, 0, 10, 10, 5, 0, 0}},
        {"a pause as asked for", {after_order, next}, 800, {75, 0, 0, 10, 10, 5, 0, 0}},
        {"a requeued job", {in_job, requeued}, 800, {75, 0, 0, 10, 10, 5, 0, 0}},
        {"a clock that was set back", {lost, jumped}, 800, {75, 0, 0, 10, 10, 5, 0, 0}, 0, 1},
        {"an attempt of an earlier version", {old, by_hand}, 400, {90, 0, 0, 10, 0, 0, 0, 0}, 1, 0},
        {"nothing but earlier versions", {old}, 0, Shares(8, none), 1, 0},
        {"no attempt", {}, 0, Shares(8, none)},
        {"killed before its first step", {never_stepped}, 8, {0, 0, 0, 100, 0, 0, 0, 0}},
        {"steps estimated beyond what there is", {estimate}, 50, {48, 16, 0, 20, 16, 0, 0, 0}},
    };
}

} // namespace

TEST_CASE("allocated time is shared out over all attempts") {
    for (auto const& row : rows()) {
        INFO(row.what);
        EffectiveTime const time(row.attempts);
        CHECK(time.allocated_s() == Approx(row.allocated_s));
        CHECK(time.not_recorded() == row.not_recorded);
        CHECK(time.unknown_waits() == row.unknown_waits);
        for (std::size_t use = 0; use < row.shares.size(); ++use) {
            INFO(time_use_names[use]);
            auto const share = time.share(static_cast<TimeUse>(use));
            CHECK((std::isnan(row.shares[use]) ? std::isnan(share)
                                               : 100 * share == Approx(row.shares[use])));
        }
    }
}

TEST_CASE("the parts of an attempt are its seconds, whatever was recorded") {
    for (auto const& row : rows()) {
        for (auto const& each : row.attempts) {
            if (each.is_recorded()) {
                auto const parts = parts_of(each);
                CHECK(std::accumulate(parts.begin(), parts.end(), 0.0) == Approx(each.seconds));
            }
        }
    }
}

TEST_CASE("effective time is told in a line, with what it leaves out") {
    auto const all = rows();
    CHECK(EffectiveTime(all[1].attempts).text() ==
          "effective time 60.0 % of 0.278 rank-hours in 2 attempts; start 8.0 %, repeated steps "
          "8.0 %, waiting 24.0 %");
    CHECK(EffectiveTime(all[7].attempts).text() ==
          "effective time 90.0 % of 0.111 rank-hours in 1 attempt; start 10.0 % (1 attempt not "
          "recorded)");
    CHECK(EffectiveTime(all[6].attempts).gaps() == "1 wait between attempts not recorded");
    CHECK(EffectiveTime(all[8].attempts).text().empty());
}
