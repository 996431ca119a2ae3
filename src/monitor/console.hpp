#pragma once

#include "base/clock.hpp"
#include "lockstep/events/events.hpp"
#include "monitor/progress_bar.hpp"
#include "monitor/recent_pace.hpp"

#include <map>
#include <string>
#include <vector>

#include "log.hpp"

namespace lockstep::monitor {

/// A run as a person reads it: a listing at the start, a bar on a terminal or sparse lines in a
/// log while it trains, a line for each epoch, measurement, new best and checkpoint, a summary.
class Console : public train::Observer {
  public:
    /// `style` is monitor.progress: auto, bar, plain or none. A bar is shown only at the normal
    /// verbosity, neither quiet nor verbose.
    Console(Log log, std::string const& style);

    void on(train::Event const& event) override;

  private:
    void show(train::Started const& event);
    void show(train::Resumed const& event);
    void show(train::Step const& event);
    void show(train::Measuring const& event);
    void show(train::Measured const& event);
    void show(train::Epoch const& event);
    void show(train::Histograms const&) {} // for event files
    void show(train::Pictures const&) {}   // the same
    void show(train::CheckpointWritten const& event);
    void show(train::CheckpointFailed const& event);
    void show(train::Remark const& event);
    void show(train::Profiled const& event);
    void show(train::Signalled const& event);
    void show(train::Ended const& event);
    void compare_with_baselines(train::Ended const& event);
    void tell_effective_time(train::Ended const& event);
    void line(std::string const& text, Style style = Style::plain);
    void important(std::string const& text, Style style);

    Log log_;
    ProgressBar bar_;
    bool plain_;
    std::string directory_;
    std::vector<std::string> host_of_rank_;
    std::int64_t total_steps_ = 0;
    Stopwatch since_start_;
    Stopwatch since_line_;
    Stopwatch since_epoch_; ///< was shown
    RecentPace pace_;
    /// By set, of this attempt.
    std::map<std::string, train::Baseline> baselines_;
    std::string validated_; ///< the newest value of the chosen metric
    double training_s_ = 0; ///< of this attempt's steps
};

} // namespace lockstep::monitor
