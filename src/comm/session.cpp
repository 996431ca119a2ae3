#include "lockstep/comm/session.hpp"

#include "base/arrival.hpp"
#include "base/brief_variable.hpp"
#include "base/environment.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "comm/heartbeats.hpp"
#include "comm/native.hpp"
#include "comm/phase.hpp"
#include "comm/progress.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>
#include <unistd.h>

namespace lockstep::comm {

namespace {

/// Whether srun started several tasks without a plug-in that lets them find each other. Open MPI
/// would end each of them in MPI_Init, with a code of its own.
bool srun_left_us_alone() {
    if (environment_number<int>("SLURM_STEP_NUM_TASKS").value_or(1) <= 1) {
        return false;
    }
    for (char const* name : {"PMIX_RANK", "PMI_RANK", "PMI_FD", "OMPI_COMM_WORLD_SIZE"}) {
        if (environment(name)) {
            return false;
        }
    }
    return true;
}

[[noreturn]] void refuse_lonely_ranks(int tasks) {
    if (launched_rank() != 0) {
        // Task 0 says why; there are no threads yet.
        std::exit(static_cast<int>(ExitCode::unavailable)); // NOLINT(concurrency-mt-unsafe)
    }
    throw Error(ExitCode::unavailable,
                {concat("the launcher started ", tasks, " tasks, but each of them is rank 0 of 1"),
                 torchrun_launched() ? "torchrun does not pass the rank numbers to MPI (RANK and "
                                       "WORLD_SIZE are set)"
                                     : "this launcher does not pass the rank numbers to this MPI",
                 torchrun_launched()
                     ? concat("Start the ranks with lockstep launch, or with mpirun -n ", tasks)
                     : std::string("Start the ranks with srun --mpi=pmix, or with mpirun inside "
                                   "the allocation")});
}

/// Where ranks fill a host's cores, a rank that waits must leave its core to the threads that read
/// data and to ranks that compute: Open MPI spins unless it is told.
bool must_wait_politely() {
    auto const cores = static_cast<int>(std::thread::hardware_concurrency());
    return environment_number<int>("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(0) >= cores;
}

/// Alone, a process needs no way to start others, and Open MPI ends it where it finds none.
bool does_without_remote_shell() {
    return launched_ranks() == 0 && !is_on_path("ssh") && !is_on_path("rsh");
}

/// What Open MPI is told while it starts; choices of the user's stay.
class StartSettings {
  public:
    StartSettings() {
        if (must_wait_politely()) {
            politely_.emplace("OMPI_MCA_mpi_yield_when_idle", "1");
        }
        if (does_without_remote_shell()) {
            alone_.emplace("OMPI_MCA_plm", "isolated");
        }
    }

    /// MPI-IO reads its settings when a file is opened for the first time: this one is none.
    static void settle_files() {
        MPI_File file = MPI_FILE_NULL;
        if (MPI_File_open(MPI_COMM_SELF, "/dev/null/none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) ==
            MPI_SUCCESS) {
            MPI_File_close(&file);
        }
    }

  private:
    std::optional<BriefVariable> politely_;
    std::optional<BriefVariable> alone_;
    /// MPI-IO's shared file pointers, which nothing here uses, are made at every opening: two of
    /// Open MPI's three ways write the file's name into a buffer that a path of 180 characters
    /// overflows.
    BriefVariable const pointers_{"OMPI_MCA_sharedfp", "^sm,lockedfile"};
};

} // namespace

MpiSession::Environment::Environment(int& argc, char**& argv) {
    if (srun_left_us_alone() || (torchrun_launched() && launched_ranks() > 1)) {
        refuse_lonely_ranks(launched_ranks());
    }
    StartSettings const settings;
    auto const own = threads_of_this_process();
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &thread_level) != MPI_SUCCESS) {
        throw Error(ExitCode::unavailable, {"MPI_Init_thread failed", "MPI cannot be started here",
                                            "Check the MPI installation and the launcher"});
    }
    StartSettings::settle_files();
    threads = threads_of_this_process();
    std::erase_if(threads, [&](int thread) { return std::ranges::count(own, thread) > 0; });
    if (thread_level < MPI_THREAD_SERIALIZED) {
        MPI_Finalize();
        throw Error(ExitCode::unavailable,
                    {"this MPI allows calls from one thread only",
                     "at least MPI_THREAD_SERIALIZED is needed, because concurrent replicas "
                     "exchange gradients from their own threads",
                     "Use an MPI that was built with MPI_THREAD_MULTIPLE"});
    }
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int const tasks = launched_ranks();
    if (size > 1 || tasks <= 1) {
        return;
    }
    MPI_Finalize();
    refuse_lonely_ranks(tasks);
}

MpiSession::Environment::~Environment() {
    // Open MPI 4 unloads its plug-ins while a thread of its own may still wait for a core to run an
    // event of MPI_Init's in one of them: then a process crashes that has done all its work. If no
    // core comes free, MPI is ended all the same.
    static_cast<void>(let_run(threads, std::chrono::seconds(5)));
    MPI_Finalize();
}

MpiSession::MpiSession(int& argc, char**& argv)
    : environment_(argc, argv), world_(Communicator::Native{MPI_COMM_WORLD}),
      heartbeats_(std::make_shared<HeartbeatTable>(world_)),
      thread_level_(environment_.thread_level) {
    world_.set_heartbeats(heartbeats_);
}

MpiSession::~MpiSession() {
    if (heartbeats_->others_speak()) {
        static_cast<void>(std::fputs("lockstep: MPI is shutting down while a thread is still "
                                     "writing a checkpoint, so the job is aborted\n",
                                     stderr));
        // A launcher that ends a job drops what it has not read.
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        abort_job(static_cast<int>(ExitCode::software));
    }
    auto& slot = heartbeats_->own();
    slot.phase.store(Phase::end);
    slot.wait.store(Wait::finalize);
    heartbeats_->progressed();
}

void MpiSession::bind_device(std::string device) {
    heartbeats_->set_device(device);
    world_.set_device(std::move(device));
}

bool threads_may_speak() {
    int level = MPI_THREAD_SINGLE;
    check(MPI_Query_thread(&level), "MPI_Query_thread");
    return level == MPI_THREAD_MULTIPLE;
}

void abort_job(int exit_code) {
    if (launched_ranks() == 0) { // no other to end, and nobody to read Open MPI's banner
        std::_Exit(exit_code);
    }
    // The launcher may be out of reach, and MPI_Abort would wait for it: then the signal ends this.
    static_cast<void>(std::signal(SIGALRM, SIG_DFL));
    ::alarm(5);
    int initialized = 0;
    int finalized = 0;
    int level = MPI_THREAD_SINGLE;
    int on_main_thread = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (initialized != 0 && finalized == 0) {
        MPI_Query_thread(&level);
        MPI_Is_thread_main(&on_main_thread);
    }
    if (level == MPI_THREAD_MULTIPLE || on_main_thread != 0) {
        MPI_Abort(MPI_COMM_WORLD, exit_code);
    }
    std::_Exit(exit_code); // a launcher ends the others when one leaves like this
}

} // namespace lockstep::comm
