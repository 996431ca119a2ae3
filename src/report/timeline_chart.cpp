#include "timeline_chart.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::report {

namespace {

using monitor::TimeUse;

constexpr std::size_t max_rows = 30;
constexpr double cause_letters = 115; ///< that fit beside each other, from the left to the right
constexpr int frame_height = 250;    ///< title, axis and legend
constexpr int row_height = 58;

struct Unit {
    char const* name;
    double seconds;
};

Unit unit_of(double seconds) {
    constexpr std::array<Unit, 4> units{{{"s", 1}, {"min", 60}, {"h", 3600}, {"days", 86400}}};
    auto const* unit = units.begin();
    while (unit + 1 != units.end() && seconds > 3 * unit[1].seconds) {
        ++unit;
    }
    return *unit;
}

/// By use; ranks that were idle have no place in an attempt's bar.
constexpr std::array<char const*, monitor::time_use_names.size()> use_colours{
    "#009E73", "#56B4E9", "#0072B2", "#E69F00", "#D55E00", "#BBBBBB", "", "#666666"};

/// Where the bars of attempts begin: time that was not allocated to the run takes no room.
struct Places {
    std::vector<double> begins;
    std::vector<double> breaks;
    std::vector<Label> labels;
};

std::vector<AttemptStretches> newest(std::vector<AttemptStretches> const& attempts) {
    auto const n = std::min(attempts.size(), max_rows);
    return {attempts.end() - static_cast<std::ptrdiff_t>(n), attempts.end()};
}

bool wait_is_known(AttemptStretches const& before, AttemptStretches const& next) {
    return monitor::continues(before.time, next.time) && next.time.waited_s >= 0;
}

Places places_of(std::vector<AttemptStretches> const& attempts) {
    Places places;
    double at = 0;
    for (std::size_t i = 0; i < attempts.size(); ++i) {
        if (i > 0 && wait_is_known(attempts[i - 1], attempts[i])) {
            at += attempts[i].time.waited_s;
        } else if (i > 0) {
            auto const& before = attempts[i - 1].time;
            auto const gap = attempts[i].time.begin() - before.begin() - before.seconds;
            places.breaks.push_back(at);
            places.labels.push_back({at, static_cast<double>(i),
                                     monitor::continues(before, attempts[i].time)
                                         ? "wait not recorded"
                                     : gap > 0 ? concat("not allocated: ", duration_text(gap))
                                               : "not allocated"});
        }
        places.begins.push_back(at);
        at += attempts[i].time.seconds;
    }
    return places;
}

std::vector<Bars::Kind> kinds_of(monitor::EffectiveTime const& whole) {
    std::vector<Bars::Kind> kinds;
    for (std::size_t use = 0; use < monitor::time_use_names.size(); ++use) {
        auto const percent = 100 * whole.share(static_cast<TimeUse>(use));
        kinds.push_back(
            {concat(monitor::time_use_names[use], " ", fixed(percent, 1), " %"), use_colours[use]});
    }
    return kinds;
}

Bars bars_of(std::vector<AttemptStretches> const& attempts, Places const& places, double unit_s) {
    Bars bars;
    for (std::size_t row = 0; row < attempts.size(); ++row) {
        auto const& attempt = attempts[row];
        auto stretches = attempt.stretches;
        if (row + 1 < attempts.size() && wait_is_known(attempt, attempts[row + 1])) {
            auto const& seconds = attempt.time.seconds;
            stretches.push_back(
                {seconds, seconds + attempts[row + 1].time.waited_s, TimeUse::waiting});
        }
        auto const begin = places.begins[row];
        for (auto const& stretch : stretches) {
            bars.bars.push_back({row, (begin + stretch.from) / unit_s,
                                 (begin + stretch.to) / unit_s, monitor::place_of(stretch.use)});
        }
        bars.rows.push_back(concat(attempt.number, ": ", amount_of(attempt.time.ranks, "rank")));
    }
    for (auto const at : places.breaks) {
        bars.breaks.push_back(at / unit_s);
    }
    return bars;
}

/// Marks above the bars, and the causes below, on the side where there is more room.
void add_losses(Chart& chart, std::vector<AttemptStretches> const& attempts, Places const& places,
                double unit_s) {
    auto const end = places.begins.back() + attempts.back().time.seconds;
    Curve losses{"loss", {}, "points pt 11 ps 1.9 lc rgb '#000000'"};
    for (std::size_t row = 0; row < attempts.size(); ++row) {
        auto const at = places.begins[row] + attempts[row].lost_at_s;
        auto const y = static_cast<double>(row);
        if (attempts[row].lost_at_s >= 0) {
            losses.points.push_back({at / unit_s, y - 0.45});
            bool const before = at > end / 2;
            auto const letters = cause_letters * (before ? at : end - at) / end;
            chart.labels.push_back(
                {at / unit_s, y + 0.28,
                 shortened(attempts[row].cause, static_cast<std::size_t>(letters)), before});
        }
    }
    if (!losses.points.empty()) {
        chart.curves.push_back(std::move(losses));
    }
}

} // namespace

Chart timeline_chart(std::string const& name, std::vector<AttemptStretches> const& all,
                     monitor::EffectiveTime const& whole) {
    Chart chart{
        .file = "timeline", .title = concat(name, ": ", whole.title()), .y_label = "attempt"};
    auto const attempts = newest(all);
    bool const tells = attempts.size() > 1 || (!attempts.empty() && attempts[0].lost_at_s >= 0);
    if (!tells) {
        return chart;
    }
    auto places = places_of(attempts);
    auto const end = places.begins.back() + attempts.back().time.seconds;
    auto const unit = unit_of(end);
    chart.x_label = concat("time in allocations (", unit.name, ")");
    chart.bars = bars_of(attempts, places, unit.seconds);
    chart.bars.kinds = kinds_of(whole);
    add_losses(chart, attempts, places, unit.seconds);
    for (auto& label : places.labels) { // beside the later attempt's bar, or the earlier one's
        label.before = label.x > 0.3 * end;
        label.y -= label.before ? 0.15 : 1.15;
        label.x /= unit.seconds;
        chart.labels.push_back(std::move(label));
    }
    chart.height = frame_height + row_height * static_cast<int>(attempts.size());
    return chart;
}

} // namespace lockstep::report
