#pragma once

#include <stdexcept>
#include <string>

namespace lockstep {

/// How the program ends; the values follow sysexits.h, and job scripts act on them.
enum class ExitCode : int {
    ok = 0,
    different = 1,      ///< `checkpoint diff`: the two are not the same
    usage = 64,         ///< the deck or the command line is wrong
    data = 65,          ///< data or a checkpoint is damaged
    no_input = 66,      ///< an input is missing
    unavailable = 69,   ///< a device, NCCL, MPI or parallel HDF5 is not usable here
    software = 70,      ///< a bug
    memory = 71,        ///< out of host or device memory
    cannot_create = 73, ///< output cannot be created
    io = 74,            ///< disk full, or an I/O error
    interrupted = 75,   ///< a signal or the walltime; the checkpoint is complete
    rank_lost = 76,     ///< a rank was lost, stalled, or its replica diverged
    superseded = 79,    ///< a newer attempt of this run has taken over
};

/// The three parts of an error message, always in this order.
struct ErrorText {
    std::string what; ///< what is wrong: "data.batch = 0 (deck.ini:7)"
    std::string why;  ///< why that is wrong: "must be at least 1"
    std::string next; ///< what to do: "set data.batch to the samples of one replica's step"
};

/// Any failure that the program can name: an exit code and a three-part message,
/// printed as "what: why. next."
class Error : public std::runtime_error {
  public:
    Error(ExitCode code, ErrorText text);

    ExitCode code() const noexcept { return code_; }
    ErrorText const& text() const noexcept { return text_; }

  private:
    ExitCode code_;
    ErrorText text_;
};

/// The failure that all ranks of a communicator agreed on: the error of the lowest-numbered failing
/// rank. It is the same on every rank, either through `agree` or because all ranks know of it.
class AgreedError : public Error {
  public:
    AgreedError(ExitCode code, ErrorText text, int rank, std::string cause);

    int rank() const noexcept { return rank_; } ///< the lowest-numbered rank that failed
    std::string const& cause() const noexcept { return cause_; } ///< "rank 3 (host) in PHASE"

  private:
    int rank_;
    std::string cause_;
};

/// A failure of one rank that the others do not know of, in the middle of a step.
class RankError : public Error {
  public:
    RankError(Error const& error, std::string where) : Error(error), where_(std::move(where)) {}

    std::string const& where() const noexcept { return where_; } ///< "training at step 12"

  private:
    std::string where_;
};

/// The code and message of the exception that is being handled; only for use in a catch block. An
/// `Error` keeps its code; an error of the file system has the code of its errno, and one of a file
/// that was only looked at is 66; out of memory (also LibTorch's) or of threads is 71; a
/// failed GPU is 76; everything else is 70. After a failed allocation, the memory reserve is freed.
Error current_error();

/// The system's text for an error number: "No space left on device". Any thread may call it.
std::string system_text(int error_number);

/// An `Error` for a failed system call, by its `error_number`: a missing file is 66; a missing
/// permission, or a file that cannot be created, 73; a name that is too long 64; no memory 71; no
/// space, quota and all others 74. `next` says what to do; too many open files get a message of
/// their own.
Error system_error(std::string const& what, int error_number, std::string const& next);

} // namespace lockstep
