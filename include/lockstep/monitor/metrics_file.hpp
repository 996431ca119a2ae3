#pragma once

#include "lockstep/base/clock.hpp"
#include "lockstep/base/file.hpp"
#include "lockstep/monitor/device_gauge.hpp"
#include "lockstep/train/report.hpp"

#include <filesystem>

namespace lockstep::monitor {

/// metrics.jsonl: one JSON object a line for every event, each with `event`, `time` (UTC) and
/// `elapsed_s`. Step records are those of monitor.log-every. Appended to at a resume.
class MetricsFile : public train::Observer {
  public:
    /// Throws  Error 73 when the file cannot be made
    explicit MetricsFile(std::filesystem::path const& path);

    void on(train::Event const& event) override;

  private:
    File file_;
    DeviceGauge gauge_;
    Stopwatch since_start_;
};

} // namespace lockstep::monitor
