#pragma once

#include "base/clock.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace lockstep::monitor {

/// The only place that reports why a job failed: as the last line on standard error, and, where the
/// job has a run directory, in its log and its records. Any thread may use it; failures of the
/// reporting itself are ignored, and nothing here throws.
class RootCause {
  public:
    /// The error that this attempt ends with once a newer one has taken the directory over; none
    /// until then.
    using Newer = std::function<std::optional<Error>()>;

    /// The run whose log.txt and metrics.jsonl get the line, too, once they exist and while there
    /// is no newer attempt.
    void set_run(std::filesystem::path directory, Newer newer);
    /// From here on, only standard error gets it.
    void forget_run();

    /// From here on the attempt is in metrics.jsonl, and how it fails belongs there, too.
    void set_on_record();

    /// Where decks have their values, so that a message about a key, or about a file that it names,
    /// can say so.
    void set_places(std::map<std::string, config::ValueOrigin> places);

    /// The error to report: once a newer attempt has the directory, any failure of this one (such
    /// as a file that the newer one has removed) is reported as that, and is no reason to requeue.
    [[nodiscard]] Error seen(Error const& error) const noexcept;

    /// The directory of this attempt, once it is on record and while it is its own; else empty.
    std::filesystem::path attempt_directory() const noexcept;

    /// `cause`: "rank 3 (host, device) in PHASE at step N"; empty: it is an error of the only
    /// process.
    void tell(std::string const& cause, Error const& error) noexcept;

    /// Adds lines to log.txt if it exists; else to standard error.
    void note(std::string const& lines) noexcept;
    /// Adds lines to log.txt if it exists, and to standard error.
    void remark(std::string const& lines) noexcept;

  private:
    /// Whether there is a log of this run.
    bool has_log() const;
    void record(std::string const& line, std::string const& cause, Error const& error) const;

    mutable std::mutex mutex_;
    std::filesystem::path directory_; ///< empty: no run's
    Newer newer_;
    bool on_record_ = false;
    std::map<std::string, config::ValueOrigin> places_;
    Stopwatch since_start_;
};

} // namespace lockstep::monitor
