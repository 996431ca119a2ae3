#include "values.hpp"

#include "base/text.hpp"

#include <cmath>

namespace lockstep::report {

namespace {

/// gnuplot fails where the room around values is beyond what a double holds.
constexpr double too_large = 1e300;

bool can_be_drawn(Point const& point) {
    return std::isfinite(point.x) && std::abs(point.y) < too_large; // nor what is not a number
}

} // namespace

Points values(monitor::RunRecords const& run, StepValue value, double factor, bool epochs) {
    Points points;
    for (auto const& step : run.steps) {
        auto const x = epochs ? step.epoch : static_cast<double>(step.step);
        Point const point{x, step.*value * factor};
        if (can_be_drawn(point)) {
            points.push_back(point);
        }
    }
    return points;
}

Points measured(std::vector<monitor::MeasuredRecord> const& records, bool epochs,
                MeasuredValue const& value) {
    Points points;
    for (auto const& record : records) {
        auto const x = epochs ? record.epoch : static_cast<double>(record.step);
        Point const point{x, value(record)};
        if (can_be_drawn(point)) {
            points.push_back(point);
        }
    }
    return points;
}

double loss_of(monitor::MeasuredRecord const& record) {
    return record.loss;
}

MeasuredValue metric_of(std::string const& name) {
    return [name](monitor::MeasuredRecord const& record) {
        auto const at = record.metrics.find(name);
        return at == record.metrics.end() ? monitor::unknown : at->second;
    };
}

bool is_share(monitor::RunRecords const& run, std::string const& metric) {
    auto const value = metric_of(metric);
    for (auto const* const records : {&run.validations, &run.tests, &run.epochs}) {
        for (auto const& record : *records) {
            auto const found = value(record);
            if (found < 0 || found > 1) {
                return false;
            }
        }
    }
    return true;
}

std::set<std::string> metrics_of(monitor::RunRecords const& run) {
    std::set<std::string> names;
    for (auto const* const records : {&run.validations, &run.tests, &run.epochs}) {
        for (auto const& record : *records) {
            for (auto const& [name, value] : record.metrics) {
                if (!monitor::is_of_one_class(name)) {
                    names.insert(name);
                }
            }
        }
    }
    return names;
}

ShownConfusion shown_confusion(monitor::RunRecords const& run) {
    ShownConfusion shown;
    for (auto const& record : run.validations) {
        bool const newer = record.best || shown.record == nullptr || !shown.record->best;
        if (newer && !record.confusion.counts.empty()) {
            shown.record = &record;
        }
    }
    for (auto const& record : run.tests) {
        if (!record.confusion.counts.empty()) {
            shown = {&record, "test"};
        }
    }
    return shown;
}

std::string privacy_text(monitor::RunRecords const& run) {
    return concat("epsilon ", fixed(run.epsilon, 4), " at delta ", run.delta, " after ",
                  count_text(run.epsilon_step), " steps");
}

} // namespace lockstep::report
