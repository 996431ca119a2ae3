#pragma once

#include "lockstep/comm/communicator.hpp"

#include <vector>

namespace lockstep::comm {

/// MPI from MPI_Init_thread to MPI_Finalize, one object per process. The only place that knows
/// MPI_COMM_WORLD: everything else is handed `world()`, a duplicate.
///
/// Collective  construction and destruction, over all ranks of the job
/// Throws      Error 69 when MPI cannot be started or does not allow calls from several threads, or
///             when every process is alone although the launcher started several (srun without its
///             MPI plug-in): task 0 throws, the others leave with 69. Error 71 when there is no
///             memory for the heartbeat table
class MpiSession {
  public:
    MpiSession(int& argc, char**& argv);
    MpiSession(MpiSession const&) = delete;
    MpiSession& operator=(MpiSession const&) = delete;

    /// Ends MPI. It aborts the job instead when another thread is still calling MPI. An error of
    /// this rank alone must not leave this object's scope, since the other ranks wait for this one:
    /// catch it inside and call `abort_job`, as `monitor::run_collectively` does.
    ~MpiSession();

    Communicator const& world() const noexcept { return world_; }

    /// Sets the device that this rank computes on, for messages. Not collective.
    void bind_device(std::string device);

    /// Where the ranks of this host report what they are doing; opaque outside the program. It
    /// exists as long as somebody holds it, even after MPI has ended.
    std::shared_ptr<HeartbeatTable const> heartbeats() const noexcept { return heartbeats_; }

    /// MPI_THREAD_SINGLE … MPI_THREAD_MULTIPLE, as MPI granted it.
    int thread_level() const noexcept { return thread_level_; }

  private:
    struct Environment {
        Environment(int& argc, char**& argv);
        ~Environment();
        int thread_level = 0;
        std::vector<int> threads; ///< MPI's own: those that MPI_Init_thread started
    };

    Environment environment_;
    Communicator world_;
    std::shared_ptr<HeartbeatTable const> heartbeats_;
    int thread_level_;
};

/// Whether MPI granted MPI_THREAD_MULTIPLE: threads may call MPI at the same time, each on a
/// communicator of its own. Not collective; MPI must be initialised.
///
/// Throws  Error 69
[[nodiscard]] bool threads_may_speak();

/// Ends all ranks at once with this exit code: the last resort for an error on one rank that the
/// others do not know of. Print the error first. Not collective; any thread may call it. If
/// MPI_Abort does not return within 5 s, SIGALRM ends this process.
[[noreturn]] void abort_job(int exit_code);

} // namespace lockstep::comm
