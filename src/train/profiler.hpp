#pragma once

#include "base/clock.hpp"
#include "base/recorder.hpp"
#include "config/steps.hpp"
#include "trace/clock_offset.hpp"
#include "trace/rank_trace.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observers.hpp"
#include "progress.hpp"
#include "run_engine.hpp"

namespace lockstep::train {

class Kineto;

/// Timelines of some steps of a run, on all ranks: those that profile.steps names, and those that
/// `lockstep profile` asks for. Steps are recorded by the scopes of all threads and by LibTorch's
/// profiler; then one file with all ranks is written, and one file per rank. A failure to write is
/// reported, and the run continues.
class Profiler {
  public:
    struct Dependencies {
        RunFacts const& facts;
        RunEngine const& engine;
        Progress const& progress;
        Observers const& observers;
    };

    explicit Profiler(Dependencies const& parts);
    ~Profiler();

    /// The steps that rank 0 was asked for, checked once per second; 0 on other ranks. Not
    /// collective.
    std::int64_t asked();

    /// Call it before each step.
    ///
    /// Collective  over the world, where a timeline begins
    void begin_step();
    /// Call it after each step. `asked`: by rank 0; `is_last`: no step follows in this attempt.
    ///
    /// Collective  over the world, where a timeline ends
    void end_step(std::int64_t asked, bool is_last);

  private:
    struct Window;

    bool is_due() const;
    void start();
    void finish();
    void write(Window& window);
    std::string write_files(Window const& window) const;
    Profiled told_of(Window const& window) const;
    std::vector<trace::LastToArrive>
    last_to_arrive(std::vector<trace::StepTimes> const& steps) const;
    Profiled::RankTimes own_times(std::vector<trace::StepTimes> const& steps,
                                  std::vector<trace::LastToArrive> const& last) const;

    Dependencies parts_;
    std::shared_ptr<Recorder> recorder_; ///< null: nobody records, then there are no timelines
    std::optional<config::StepRange> wanted_;
    std::unique_ptr<Window> window_; ///< null: no timeline is recorded
    Stopwatch since_looked_;
};

} // namespace lockstep::train
