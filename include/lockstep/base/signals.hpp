#pragma once

#include <string>

namespace lockstep {

/// Turns SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU and the first SIGINT into a request that the training
/// loop polls; a second SIGINT ends the process at once. There is one request per process, however
/// many objects exist; the first decides what SIGHUP means. After the last is gone, the signals do
/// what they did before; after own_process() (app/own_process.hpp), SIGTERM and SIGINT then end the
/// process, and the other signals are ignored. Objects are made and destroyed on one thread.
class SignalRequests {
  public:
    /// What SIGHUP (the terminal has closed) means; if it was ignored from the start, it stays
    /// ignored.
    enum class Hangup { nothing, request };

    explicit SignalRequests(Hangup hangup = Hangup::nothing);
    ~SignalRequests();
    SignalRequests(SignalRequests const&) = delete;
    SignalRequests& operator=(SignalRequests const&) = delete;

    /// The latest signal; 0 if there was none. Any thread may call it.
    static int pending() noexcept;
};

/// Resets all signals to their default action and unblocks them: whoever started this process may
/// have ignored or blocked some, such as SIGCHLD, without which a child's end goes unnoticed.
/// Signals that are ignored on purpose stay ignored: SIGHUP (nohup), SIGINT, SIGQUIT and the
/// terminal's stop signals (shells). Safe between fork and exec.
void reset_signals() noexcept;

/// Takes the place of a signal's number when a run stops because its job's time is nearly over.
constexpr int walltime_over = -1;

/// Like `walltime_over`, but even the job's whole time limit would be too short.
constexpr int job_too_short = -2;

/// A SIGTERM from the launcher alone, which ends its ranks because it has lost one, say.
constexpr int ended_by_launcher = -3;

/// "SIGTERM" for 15 and `ended_by_launcher`, and so on; "walltime" for `walltime_over` and
/// `job_too_short`.
std::string signal_name(int number);

} // namespace lockstep
