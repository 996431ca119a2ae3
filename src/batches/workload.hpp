#pragma once

#include "batches/constant_answer.hpp"
#include "batches/target_moments.hpp"
#include "lockstep/comm/communicator.hpp"
#include "lockstep/config/deck.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/task/task.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

class TeacherOutputs;

/// The data sets, the task and the model of a deck.
struct Workload {
    std::unique_ptr<data::Dataset> train;
    std::unique_ptr<data::Dataset> validation; ///< none: null
    std::unique_ptr<data::Dataset> test;       ///< none: null
    std::unique_ptr<task::Task> task;
    std::shared_ptr<nn::Model> model;
    std::vector<std::string> frozen;  ///< names of the parameters that are not trained
    task::Samples samples;            ///< the facts of the training set, or of the environment
    data::Facts facts;                ///< what the model knows of its samples
    std::vector<std::string> remarks; ///< on sets that are used otherwise than their files say
    rl::EnvironmentMaker environment; ///< null: there are data sets instead
    task::MetricKind best_metric;     ///< by which the best model is chosen
    std::optional<TargetMoments> target_moments{};           ///< of a regression
    std::shared_ptr<ConstantAnswer const> constant_answer{}; ///< none: null
    bool mixes_labels = false; ///< batches hold what data::Mixing adds to labels
    std::int64_t teacher = 0;  ///< hash of the model or outputs that are learnt from; 0: none
    std::int64_t teacher_weights = 0; ///< hash of that model's weights alone; 0: there is none
    std::shared_ptr<TeacherOutputs const> outputs; ///< of distill.outputs; none: null
    /// With distill.outputs: hash and number of the samples of data.train, a share for validation
    /// included.
    std::int64_t data_hash = 0;
    std::int64_t data_samples = 0;
};

/// What the deck says of a data set in these files, with its samples' weights where `weights` names
/// them.
data::DatasetOptions dataset_options(config::Data const& data, std::string const& files,
                                     std::string const& weights = {},
                                     data::Labels labels = data::Labels::guessed);
/// The same, with labels as the deck's task has them.
data::DatasetOptions dataset_options(config::Deck const& deck, std::string const& files,
                                     std::string const& weights = {});

/// Opens one data set of the deck, with its samples' weights where `weights` names them; null when
/// `files` is empty.
std::unique_ptr<data::Dataset> open_dataset(config::Deck const& deck, std::string const& files,
                                            std::string const& weights = {});
/// The same by all ranks.
///
/// Collective  over `world`
/// Throws      AgreedError as Dataset::open_together
std::unique_ptr<data::Dataset> open_dataset_together(config::Deck const& deck,
                                                     std::string const& files,
                                                     std::string const& weights,
                                                     comm::Communicator const& world);

/// What the model that a run continues from was trained on.
struct Origin {
    data::Facts facts;
    std::string whose; ///< how messages call that data
    /// For what the samples of data.train are compared with them; none: that is done elsewhere.
    std::optional<data::Use> use{};
    bool force = false; ///< they may mean something else
};

/// The data sets that a deck names; none where its task learns from an environment.
struct Datasets {
    std::unique_ptr<data::Dataset> train;
    std::unique_ptr<data::Dataset> validation; ///< from files, not a share of the training set
    std::unique_ptr<data::Dataset> test;
    std::optional<Origin> origin{};
    std::optional<TargetMoments> target_moments{};
};

/// Throws  Error as Dataset does; 64 where the deck has none to train on, or where something that
///         needs no data is wrong already
Datasets open_datasets(config::Deck const& deck);
/// The same by all ranks.
///
/// Collective  over `world`
/// Throws      AgreedError as `open_datasets`
Datasets open_datasets_together(config::Deck const& deck, comm::Communicator const& world);

/// Lets the sets of a deck, or those of them that are in files of their own, be read as its
/// training set is.
///
/// Throws   Error 65 where the samples of two of them mean something else
/// Returns  lines for the user on sets that name another mean and std
std::vector<std::string> read_like_training(config::Deck const& deck, data::Facts const& train,
                                            data::Dataset* validation, data::Dataset* test);

/// Throws  Error 64 for a deck whose task plays episodes, and which names data sets to measure
void require_no_datasets(config::Deck const& deck);

/// `check_size` is called with the number of parameters before the model is made, and may throw.
///
/// Throws  Error as Dataset, make_task, make_model and `check_size` do
Workload open_workload(config::Deck const& deck, Datasets datasets,
                       std::function<void(double parameters)> const& check_size);

/// Whether training fits into `available` bytes on each of `ranks` ranks, for `open_workload`.
///
/// Throws  Error as `require_memory` does, when it is called
std::function<void(double parameters)> fits_within(config::Deck const& deck, int ranks,
                                                   torch::Device device, std::uint64_t available);

/// What the targets of a training batch hold: those of the samples, then the labels and shares of
/// mixed samples, or the outputs of a teacher where they are read from a file.
std::vector<data::FieldInfo> batch_targets(Workload const& work);

/// The inputs that the model of a deck gets, and the outputs that it must return.
nn::Interface model_interface(config::Deck const& deck, task::Samples const& samples,
                              task::Task const& task);

/// One more instance of the workload's model, without adapters.
std::shared_ptr<nn::Model> another_model(config::Deck const& deck, Workload const& work);
/// The same, with the adapters and the frozen parameters of a training.
std::shared_ptr<nn::Model> another_trained_model(config::Deck const& deck, Workload const& work);

} // namespace lockstep::train
