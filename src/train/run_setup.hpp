#pragma once

#include "checkpoint/reader.hpp"
#include "checkpoint/store.hpp"
#include "data/augment.hpp"
#include "data/plan.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/task/task.hpp"
#include "lockstep/train/trainer.hpp"

#include <functional>
#include <memory>
#include <optional>

#include "progress.hpp"
#include "run_directory.hpp"

namespace lockstep::train {

/// A run's directory and where the run resumes from; the deck with everything in it decided.
struct RunSetup {
    config::Deck deck;
    std::shared_ptr<RunDirectory> directory; ///< on rank 0 only
    std::optional<checkpoint::Found> found;  ///< what to resume from
    bool shares_state = true;                ///< the optimizer of `found` with the deck's
    bool requeued = false;           ///< an earlier attempt of this job has done what resume says
    std::filesystem::path local;     ///< the run's place in checkpoint.local; empty: none
    std::vector<std::string> forced; ///< changes that --force allowed
};

/// Locks the directory, finds the newest good checkpoint, and settles the deck: names, replicas,
/// batch. Verifies that the deck may change as it did.
///
/// Collective  over `world`
/// Throws      AgreedError: 73 for a directory that cannot be used, 65 when all checkpoints are
///             damaged, 64 for a change that needs --force, for an indivisible global batch, or for
///             more ranks than replicas
RunSetup set_up_run(comm::Communicator const& world, RunOptions const& options);

/// The checkpoint that a start of the deck's run resumes from, verified; nothing where it begins.
/// `local` is the run's place in checkpoint.local, or empty; `requeued`: what checkpoint.resume
/// says was done by an earlier attempt of this job, which this one resumes from. Writes nothing.
///
/// Collective  over `world`
/// Throws      AgreedError 65 when all checkpoints, or the one that is named, are damaged
std::optional<checkpoint::Found> found_for(comm::Communicator const& world,
                                           config::Deck const& deck,
                                           std::filesystem::path const& local, bool requeued);

/// What a start comes to, whoever asks: train, plan or estimate.
struct Decided {
    config::Deck deck;               ///< settled
    std::vector<std::string> forced; ///< changes that `force` allowed
    bool shares_state = true;        ///< the optimizer of the checkpoint with the deck's
};

/// Looks at a deck before anything is done for it: what is mistyped is told as that, and not as a
/// change of the run.
///
/// Throws  Error 64 for a model, a task or a key of theirs that there is not, or for a mode of one
///         rank on several; 66 or 69 for a plug-in that cannot be loaded
void require_possible(config::Deck const& deck, int ranks);

/// Settles the deck of a run that resumes from `found`, or begins, on so many ranks.
///
/// Throws  Error 64 for a change that needs `force`, for an indivisible global batch, or for more
///         ranks than replicas
Decided decide(config::Deck deck, std::optional<checkpoint::Found> const& found, int ranks,
               bool force);

/// Whether an attempt before this one came to the end, test included: by the record of it in the
/// run's directory, since the last checkpoint is older than the test. `all_learnt`: no step is
/// left.
bool is_finished(Progress const& progress, bool all_learnt, bool has_test,
                 std::filesystem::path const& directory);

/// Settles replicas and batch of a deck as for a new run on so many ranks.
///
/// Throws  Error 64 for an indivisible global batch, or for more ranks than replicas
void settle_new(config::Deck& deck, int ranks);

/// The data sets, the task and the model of a deck.
struct Workload {
    std::unique_ptr<data::Dataset> train;
    std::unique_ptr<data::Dataset> validation; ///< none: null
    std::unique_ptr<data::Dataset> test;       ///< none: null
    std::unique_ptr<task::Task> task;
    std::shared_ptr<nn::Model> model;
    task::Samples samples;            ///< what the training set, or the environment, offers
    rl::EnvironmentMaker environment; ///< none: null, and there are data sets
    task::MetricKind best_metric;     ///< what the best model is chosen by
};

/// Opens one data set of the deck, and its samples' weights where they are named; null when `files`
/// is empty.
std::unique_ptr<data::Dataset> open_dataset(config::Data const& data, std::string const& files,
                                            std::string const& weights = {});

/// The training set without the share that data.validation asks for, and that share; nothing where
/// it asks for none. The same on any number of ranks.
///
/// Throws  Error 64 when there are too few samples
std::optional<std::pair<data::Dataset, data::Dataset>> divide(config::Deck const& deck,
                                                              data::Dataset const& train);

/// `check_size` is told the number of parameters before the model is made, and may throw.
///
/// Throws  Error as Dataset, make_task, make_model and `check_size` do
Workload open_workload(config::Deck const& deck,
                       std::function<void(double parameters)> const& check_size);

/// The same where training is to fit into `available` bytes on each of `ranks` ranks.
///
/// Throws  Error as `open_workload` and `require_memory` do
Workload open_workload_within(config::Deck const& deck, int ranks, std::uint64_t available);

/// What the model of a deck is fed and shall give.
nn::Interface model_interface(config::Deck const& deck, task::Samples const& samples,
                              task::Task const& task);

/// One more instance of the workload's model.
std::shared_ptr<nn::Model> another_model(config::Deck const& deck, Workload const& work);

/// Where validation is a share of the training set: how it was drawn, with the counts of both by
/// class, and a warning of classes that have none in it. Else nothing.
std::vector<std::string> share_remarks(config::Deck const& deck, Workload const& work);

/// Throws  Error 71 when training needs more bytes on a rank than it can have: what is needed, what
///         is there, what to change
void require_memory(double needed, std::uint64_t available);

/// Throws  Error 64 for what cannot be done to the samples, or would leave targets where they were
data::Augmentation augmentation_of(config::Deck const& deck, task::Samples const& samples);

/// The plan of training epochs. Throws Error 64 when there are too few samples.
data::TrainPlan train_plan(config::Deck const& deck, data::Dataset const& dataset);

/// Steps of the whole run: the least of train.epochs, train.steps and `max_steps`, where these
/// are above 0.
///
/// Throws  Error 64 when there is none of them
std::int64_t total_steps(config::Train const& train, std::int64_t steps_per_epoch,
                         std::int64_t max_steps = 0);

} // namespace lockstep::train
