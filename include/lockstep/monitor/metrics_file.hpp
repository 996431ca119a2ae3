#pragma once

#include "lockstep/events/events.hpp"

#include <filesystem>
#include <memory>

namespace lockstep::monitor {

/// metrics.jsonl: one JSON object per line for each event except remarks and pictures, with
/// `event`, `time` (UTC) and `elapsed_s`. Step records are those of monitor.log-every. Appended to
/// at a resume.
class MetricsFile : public train::Observer {
  public:
    /// Throws  Error 73 when the file cannot be made, 74 when the disk is full
    explicit MetricsFile(std::filesystem::path const& path);
    ~MetricsFile() override;

    /// Throws  Error 74 when the record cannot be written
    void on(train::Event const& event) override;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace lockstep::monitor
