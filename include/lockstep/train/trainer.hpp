#pragma once

#include "lockstep/base/signals.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/events/events.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::nn {
class Model;
}

namespace lockstep::checkpoint {
class Reader;
struct Snapshot;
} // namespace lockstep::checkpoint

namespace lockstep::train {

class StepWitness;

struct PlaceOnHost {
    int rank = 0;
    int ranks = 1;
};

/// What a run is started with.
struct RunOptions {
    config::Deck deck;
    bool force = false;  ///< deck changes that change the result are allowed at a resume
    std::string version; ///< of the program
    /// Seconds that the job's time still has when `train` is called; rank 0's value is used.
    std::optional<double> seconds_left{};
    std::optional<double> seconds_of_job{}; ///< the job's whole time limit; rank 0's value is used
    std::vector<std::string> remarks{};     ///< printed at the start; rank 0's are used
    /// Makes rank 0's observers, once the run's directory exists; may be empty.
    std::function<std::vector<std::unique_ptr<Observer>>(config::Deck const&)> observers{};
    /// Called on every rank once this attempt holds the lease of the run's directory, with its
    /// fencing token.
    std::function<void(std::int64_t token)> held{};
    /// Called on every rank once this attempt is on record; not for a run that is finished already.
    /// A failure before that is not added to the records of earlier attempts.
    std::function<void()> begun{};
    /// Called on each rank after its first step, when libraries have made all that they make only
    /// once.
    std::function<void()> stepped{};
    /// Share of the run's length, above 0, after which it pauses: it validates, writes a checkpoint
    /// and ends as "paused"; the next start continues. The schedule is that of the whole length.
    double pause_at = 1;
    /// Asks this rank to leave, besides signals and the walltime: returns a signal's number, or 0
    /// if nothing asks. Called before each step.
    std::function<int()> asked{};
    /// Where several runs share a host and a process trains one run after the other: this rank's
    /// place among all ranks of the host, of all runs. What the process used before this run does
    /// not count.
    std::optional<PlaceOnHost> place{};
    /// What the run resumes from instead of what the deck says: a checkpoint that ranks hold in
    /// memory. Null on all ranks: as the deck says.
    std::shared_ptr<checkpoint::Reader const> resume_from{};
    /// A model file whose parameters are added to the mean gradient in every step; empty: none. It
    /// must be the same whenever the run continues.
    std::filesystem::path correction{};
    /// A step up to which another run is done again, to look at it: this run pauses there, writes
    /// no checkpoint, and measures only what decides on its next steps. 0: it is a run of its own.
    std::int64_t replay_to = 0;
    /// Sees the steps of a replay; null: nobody does. It must outlive the run.
    StepWitness* witness = nullptr;
};

class Run;

/// A run whose epochs are in the hands of its caller, for loops that decide between them.
///
/// Collective  every function but step() and model(), over `world`; same order on all ranks
/// Throws      each: AgreedError on every rank for what can be agreed on; RankError, or another
///             Error (69 from MPI, 76 for a rank that does not arrive, or an observer's), on one
///             rank only, after which the caller must end the job: `abort_job`
class Trainer {
  public:
    /// Sets up: opens the data, makes the model, and resumes from the newest good checkpoint or
    /// writes the first one. `world` and `signals` must outlive it.
    ///
    /// Collective  over `world`; same deck on all ranks
    Trainer(comm::Communicator const& world, RunOptions options, SignalRequests const& signals);
    Trainer(Trainer&&) noexcept;
    /// Collective  as the destructor of what is replaced
    Trainer& operator=(Trainer&&) noexcept;
    /// Collective  over the world it was made with
    ~Trainer();

    /// Steps to the end of an epoch, with the validations and checkpoints that the deck asks for;
    /// false where no step was left to do, or the run was asked to leave.
    bool train_epoch();
    /// Measures the validation set with the weights as they are, besides the validations that the
    /// deck asks for; nothing is recorded. Returns nothing where there is no such set, or the run
    /// was asked to leave.
    std::optional<Measured> validate();
    /// Writes a checkpoint of this step, unless there is one.
    void save_checkpoint();
    /// Writes the last checkpoint and, unless the run was asked to leave, measures the test set
    /// with the best model. `reason` is "stopped" when epochs were left: the next start continues.
    /// The last call, once.
    Ended finish();

    std::int64_t step() const; ///< steps done; not collective
    /// The step at which the run pauses or ends; not collective.
    std::int64_t pause_step() const;
    /// This rank's part of a checkpoint of this step. It refers to the trainer's memory, and is
    /// valid until the next step.
    ///
    /// Not collective
    checkpoint::Snapshot snapshot();
    /// The model with its weights as they are; not collective. Whoever changes them changes the
    /// run.
    nn::Model& model();

  private:
    std::unique_ptr<Run> run_;
};

/// Trains what the deck says: opens the data, resumes from the newest good checkpoint or starts
/// over, steps, validates, writes checkpoints, and measures the test set with the best model.
///
/// Collective  over `world`; same options on all ranks
/// Throws      as Trainer's functions
/// Returns     why it ended; `reason` is a signal's name or "walltime" when it was interrupted
Ended train(comm::Communicator const& world, RunOptions const& options,
            SignalRequests const& signals);

/// The device that the deck gives this rank, as text: "cpu" or "cuda:0".
///
/// Collective  over `world`
/// Throws      AgreedError 69 when the deck names a device that is not here, 64 for a text that is
///             no device's name
std::string device_of_rank(comm::Communicator const& world, config::Run const& run);

} // namespace lockstep::train
