#pragma once

#include "lockstep/monitor/run_records.hpp"

#include <array>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "points.hpp"

namespace lockstep::report {

constexpr std::size_t max_points = 1500; ///< of a curve; a picture has that many columns
constexpr double mebibyte = 1 << 20;

using StepValue = double monitor::StepRecord::*;
using MeasuredValue = std::function<double(monitor::MeasuredRecord const&)>;

/// A part of a step's time.
struct TimePart {
    StepValue value;
    char const* title;
};

constexpr std::array<TimePart, 6> time_parts{
    {{&monitor::StepRecord::forward_ms, "forward"},
     {&monitor::StepRecord::backward_ms, "backward"},
     {&monitor::StepRecord::communication_ms, "communication"},
     {&monitor::StepRecord::imbalance_ms, "waiting for slower ranks"},
     {&monitor::StepRecord::data_ms, "data"},
     {&monitor::StepRecord::update_ms, "update"}}};

/// The values of a run that can be drawn over its steps; `epochs`: over its epochs instead.
Points values(monitor::RunRecords const& run, StepValue value, double factor = 1,
              bool epochs = false);
Points measured(std::vector<monitor::MeasuredRecord> const& records, bool epochs,
                MeasuredValue const& value);

double loss_of(monitor::MeasuredRecord const& record);
MeasuredValue metric_of(std::string const& name);
/// Whether all values are shares, which go into one picture.
bool is_share(monitor::RunRecords const& run, std::string const& metric);
/// The measurement whose confusion matrix is shown: the test, or else the best validation, or the
/// newest; null where none has one.
struct ShownConfusion {
    monitor::MeasuredRecord const* record = nullptr;
    char const* set = "validation";
};
ShownConfusion shown_confusion(monitor::RunRecords const& run);
/// "epsilon 4.2232 at delta 1e-05 after 90 steps", where epsilon is known.
std::string privacy_text(monitor::RunRecords const& run);
/// The metrics that the run has recorded, without those of single classes.
std::set<std::string> metrics_of(monitor::RunRecords const& run);

} // namespace lockstep::report
