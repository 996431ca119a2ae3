#pragma once

#include "base/arrived_ranks.hpp"
#include "base/awake_clock.hpp"
#include "lockstep/base/signals.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "arrivals_directory.hpp"
#include "hosts.hpp"
#include "listener.hpp"
#include "process.hpp"
#include "record.hpp"

namespace lockstep::launch {

/// How an attempt of the run has ended.
struct AttemptEnd {
    int code = 0;         ///< the launcher's
    AttemptStatus record; ///< according to the run's own records
    std::string told;     ///< the root cause, as a rank has printed it; may be empty
    std::optional<LauncherVerdict> verdict; ///< the launcher's, or what this process concludes
    bool arrived = false;                   ///< at least one rank has left its mark
    bool by_own_signal = false;             ///< a rank that had only begun died of the wish to end
    bool launcher_killed = false;           ///< by a signal, and not by this process
    std::vector<ArrivedRank> ranks{};       ///< that have left their marks
    std::string checkpoints_id{};           ///< of the run; empty: it was not seen
};

/// What the exit code of a launcher means, in words.
std::string left_with(int code);

/// One attempt of the run, from the start of its launcher on. Every request to end reaches the
/// ranks as USR1 sent to the launcher.
class LaunchedAttempt {
  public:
    struct Start {
        std::vector<std::string> words;
        std::vector<Host> hosts;
        int ranks = 1;
        bool restart = false;
        bool continues = false; ///< a run that has begun: its directory exists, or is unmounted
        double limit_s = 0; ///< for all ranks to arrive and, after a restart, for the first step
    };

    LaunchedAttempt(Start start, Watcher& watcher, std::filesystem::path const& directory);

    AttemptEnd wait_for_end();

  private:
    void pass_on_wish();
    bool late(std::string& why);
    bool stepped() const;
    std::vector<int> missing() const;
    void count_marks();
    bool lasts(bool is_so, std::optional<double>& since, double limit_s) const;
    bool ended_too_long(std::string& why);
    bool missing_too_long(std::string& why);
    bool stopped_too_long(std::string& why);
    bool loss_is_known();
    LauncherVerdict stopped() const;
    int end_at_once();
    int end_late(std::string const& why);
    std::optional<LauncherVerdict> absent(std::vector<int> const& missed,
                                          std::string const& why) const;
    std::string host_of(int rank) const;

    Start start_;
    Watcher& watcher_;
    std::filesystem::path directory_;
    ArrivalsDirectory arrivals_;
    LaunchListener listener_;
    LauncherProcess process_;
    AwakeClock clock_; ///< looked at once in each turn
    double now_ = 0;
    std::optional<double> asked_at_;
    double counted_at_ = 0;
    std::optional<double> told_at_;
    std::optional<double> missing_since_;
    std::optional<double> stopped_since_;
    std::optional<double> gone_since_; ///< all ranks of this host
    std::optional<double> over_since_;
    bool end_on_record_ = false;
    double records_read_at_ = 0;
    std::string checkpoints_id_;
    double failure_read_at_ = 0;
    std::optional<double> host_lost_at_; ///< so the launcher says
    bool recovering_;
    bool all_came_ = false;
    std::vector<int> missed_; ///< when they were counted last
    std::map<int, int> here_; ///< the processes of this host's ranks, once all have come
    std::optional<LauncherVerdict> verdict_; ///< where this process has ended the attempt
};

} // namespace lockstep::launch
