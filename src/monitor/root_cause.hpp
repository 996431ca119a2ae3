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

/// The one place that tells why a job failed: as the last line on standard error, and, where the
/// job has a run directory, in its log and its records. Any thread may use it; what goes wrong with
/// telling is no cause of anything: nothing here throws.
class RootCause {
  public:
    /// What a newer attempt that has taken the directory over means for this one; none while the
    /// directory is this one's.
    using Newer = std::function<std::optional<Error>()>;

    /// Whose log.txt and metrics.jsonl get the line, too, once they are there, and while there is
    /// no newer attempt.
    void set_run(std::filesystem::path directory, Newer newer);
    /// From here on standard error alone gets it.
    void forget_run();

    /// From here on the attempt is in metrics.jsonl, and how it fails belongs there, too.
    void set_on_record();

    /// Where decks have their values: a message on a key, or on a file that it names, says so.
    void set_places(std::map<std::string, config::Place> places);

    /// What an error comes down to: once a newer attempt has the directory, whatever befalls this
    /// one, a file that the newer one has put away, say, is that and nothing to be requeued for.
    [[nodiscard]] Error seen(Error const& error) const noexcept;

    /// The directory of this attempt, once it is on record and while it is its own; else empty.
    std::filesystem::path attempt_directory() const noexcept;

    /// `cause`: "rank 3 (host, device) in PHASE at step N"; empty: it is a mistake of the one
    /// process that there is.
    void tell(std::string const& cause, Error const& error) noexcept;

    /// Adds lines to log.txt, where there is one; else to standard error.
    void note(std::string const& lines) noexcept;

  private:
    /// Whether there is a log of this run.
    bool has_log() const;
    void record(std::string const& line, std::string const& cause, Error const& error) const;

    mutable std::mutex mutex_;
    std::filesystem::path directory_; ///< empty: no run's
    Newer newer_;
    bool on_record_ = false;
    std::map<std::string, config::Place> places_;
    Stopwatch since_start_;
};

} // namespace lockstep::monitor
