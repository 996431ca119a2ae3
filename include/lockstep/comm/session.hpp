#pragma once

#include "lockstep/comm/communicator.hpp"

namespace lockstep::comm {

/// MPI from MPI_Init_thread to MPI_Finalize, one a process. The only place that knows
/// MPI_COMM_WORLD: everything else is handed `world()`, a duplicate.
///
/// Collective  construction and destruction, over all ranks of the job
/// Throws      Error 69 when MPI cannot be started or lets one thread alone speak, or when every
///             process is alone although the launcher started several (srun without its MPI
///             plug-in)
class MpiSession {
  public:
    MpiSession(int& argc, char**& argv);
    MpiSession(MpiSession const&) = delete;
    MpiSession& operator=(MpiSession const&) = delete;

    /// Ends MPI; aborts the job instead when an error that was not agreed is unwinding, since the
    /// other ranks would wait for this one for ever, and when another thread still speaks.
    ~MpiSession();

    Communicator const& world() const noexcept { return world_; }

    /// Says which device this rank computes on, for messages. Not collective.
    void bind_device(std::string device);

    /// Where the ranks of this host say what they are at; it outlives MPI with who watches it.
    std::shared_ptr<HeartbeatTable const> heartbeats() const noexcept { return heartbeats_; }

    /// MPI_THREAD_SINGLE … MPI_THREAD_MULTIPLE, as MPI granted it.
    int thread_level() const noexcept { return thread_level_; }

  private:
    struct Environment {
        Environment(int& argc, char**& argv);
        ~Environment();
        int thread_level = 0;
    };

    Environment environment_;
    Communicator world_;
    std::shared_ptr<HeartbeatTable const> heartbeats_;
    int thread_level_;
};

/// Whether MPI granted MPI_THREAD_MULTIPLE: threads may speak with other ranks at once, each on a
/// communicator of its own. Not collective; MPI has to run.
///
/// Throws  Error 69
[[nodiscard]] bool threads_may_speak();

/// Ends all ranks at once with this exit code. The last resort for an error on one rank that the
/// others do not know of; everything worth saying has been printed before. Any thread may call it.
[[noreturn]] void abort_job(int exit_code);

} // namespace lockstep::comm
