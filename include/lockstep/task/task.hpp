#pragma once

#include "lockstep/config/own_keys.hpp"
#include "lockstep/data/dataset.hpp"
#include "lockstep/nn/model.hpp"
#include "lockstep/rl/environment.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::task {

/// One batch on the device that computes.
struct Tensors {
    nn::Fields inputs;
    nn::Fields targets;

    std::int64_t samples() const { return inputs.samples(); }
};

/// What a batch yields: the sum of its samples' losses, which autograd can differentiate, and the
/// weight that the sum over all replicas is divided by. The tensors may be on the device: they are
/// read once per step, so that the host need not wait for each batch.
struct Loss {
    torch::Tensor sum; ///< a scalar
    double weight = 0;
    torch::Tensor figures{}; ///< [n] float64, sums of what Task::figures names; or undefined
    torch::Tensor counts{};  ///< [Task::training_counts] int64; or undefined
};

/// Sums over an evaluated batch. Counts are whole numbers, so adding them is exact in any order;
/// the others are added batch by batch in a fixed tree.
struct Tally {
    double loss_sum = 0;
    double weight = 0;
    std::vector<std::int64_t> counts{};
    std::vector<double> sums{};
    std::vector<float> scores{}; ///< Task::scores of each sample, in the samples' order
};

/// What a model's outputs say of samples without targets.
enum class Predicts {
    nothing,    ///< such as a policy, which acts
    values,     ///< real values of each sample
    classes,    ///< the probability of each class, for each sample
    places,     ///< the class of each position of a sample
    transcripts ///< a text for each sample
};
struct Prediction {
    torch::Tensor
        numbers{}; ///< [n, values…] or [n, classes] float32; [n, places…] int64; on the CPU
    std::vector<std::string> texts{}; ///< of transcripts
};

/// Named values, "accuracy" → 0.92.
using Metrics = std::map<std::string, double>;

/// What a task learns from: the facts of a data set or of an environment.
struct Samples {
    std::vector<data::FieldInfo> inputs{};
    std::vector<data::FieldInfo> targets{};
    std::vector<std::string> class_names{};
    std::vector<std::int64_t> class_counts{}; ///< empty unless the target is one class per sample
    std::optional<rl::Spaces> spaces{};       ///< of an environment; none for a data set
    /// How many bytes of text each token stands for; empty where that is not known.
    std::vector<std::uint8_t> token_bytes{};
    /// What a regression's targets are normalised by: as data::Facts.
    std::vector<double> target_mean{};
    std::vector<double> target_std{};
    bool masked = false;      ///< the second target marks the tokens to learn (data.mask)
    std::string model_file{}; ///< the deck's model file, for a task that it describes
    /// Metrics that the deck asks for, besides those that the task always measures.
    std::vector<std::string> metrics{};

    bool ask_for(std::string const& metric) const;

    static Samples of(data::Dataset const& dataset);
    /// What a model was trained on, whose classes nobody counts any more.
    static Samples of(data::Facts const& facts);
    static Samples of(rl::Spaces const& spaces);
};

/// What one step of training means. Its const functions are called by several threads at once, each
/// with a model of its own; nothing here is collective.
class Task {
  public:
    virtual ~Task() = default;
    /// Shape   sum: a scalar; figures and counts: as many as `figures` and `training_counts` say
    /// Throws  Error 65 for a target that the task cannot learn; what LibTorch throws ends the run
    ///         with 64
    virtual Loss training_loss(nn::Model& model, Tensors const& batch) const = 0;
    /// Shape   as many counts and sums as `counts` and `sums` say
    /// Throws  as `training_loss`
    virtual Tally evaluate(nn::Model& model, Tensors const& batch) const = 0;
    virtual Predicts predicts() const { return Predicts::values; }
    /// Shape   as `predicts` says
    /// Throws  as `training_loss`
    virtual Prediction predict(nn::Model& model, nn::Fields const& inputs) const;
    /// How many numbers a model must return: for a sample, or for each of its positions or time
    /// steps.
    virtual std::int64_t outputs() const = 0;
    virtual std::size_t counts() const { return 0; } ///< length of Tally::counts
    virtual std::size_t sums() const { return 0; }   ///< length of Tally::sums
    /// How many numbers of each sample an evaluation keeps, for metrics that follow from all
    /// samples together; all ranks have those of the whole set in memory.
    virtual std::size_t scores() const { return 0; }
    /// Metrics from the tallies of all batches on all ranks. `loss` is added by the caller.
    virtual Metrics metrics(Tally const& total) const = 0;
    /// How often samples of each class were taken for each class, where the deck asks for it.
    ///
    /// Shape  [true class][predicted class]; or empty
    virtual std::vector<std::int64_t> confusion(Tally const& /*total*/) const { return {}; }
    virtual std::size_t training_counts() const { return 0; } ///< length of Loss::counts
    /// Training metrics of an epoch, from the counts of all its batches together.
    virtual Metrics training_metrics(std::vector<std::int64_t> const& /*counts*/) const {
        return {};
    }
    /// Weight of each class in the training loss; empty: all 1.
    virtual std::vector<double> class_weights() const { return {}; }
    /// Names of parts of the training loss; steps and epochs report their weighted means.
    virtual std::vector<std::string> figures() const { return {}; }
    /// The positions of a batch that count in the loss, where not all do.
    ///
    /// Shape  [samples, place…] bool; undefined: all count
    virtual torch::Tensor counted(Tensors const& /*batch*/) const { return {}; }
    /// The number of classes of the first target where it is a class for each position of a sample;
    /// else 0.
    virtual std::int64_t classes_of_places() const { return 0; }
    /// A label of positions that do not count, besides the classes.
    virtual std::optional<std::int64_t> ignored_class() const { return {}; }
};

/// A metric, and which way is better.
struct MetricKind {
    std::string name; ///< with K in place of a number that the deck chooses: "top-K"
    bool more_is_better = true;
    bool on_request = false; ///< measured where the deck names it
    bool is_table = false;   ///< no number, by which a model could be the best
};

/// A task that a deck can name.
struct TaskKind {
    std::string name;
    std::string meaning;
    std::vector<config::OwnKey> keys;
    std::vector<MetricKind> metrics; ///< the first decides which model is best, unless a deck does
    /// Throws  Error 64 for a value of a key that the task cannot have; 65 when the samples are not
    ///         of a kind that it can learn
    std::function<std::unique_ptr<Task>(config::OwnValues const&, Samples const&)> make;
    /// Opens the environments that the task acts in, with the files of data.train; null: it learns
    /// from data sets.
    ///
    /// Throws  Error 64 to 66 when they cannot be made from these keys and files
    std::function<rl::EnvironmentMaker(config::OwnValues const&, std::string const&)> environment{};
    /// Metrics that the model's file describes, besides `metrics`; null: none.
    ///
    /// Throws  Error 65 or 66 for a file that should describe them
    std::function<std::vector<MetricKind>(std::string const& model_file)> metrics_of_file{};
    data::Labels labels = data::Labels::guessed; ///< what whole numbers per sample are
};

/// All tasks, by name; without ppo in a program built without reinforcement learning.
std::vector<TaskKind> task_kinds();

/// Throws  Error 64 when the deck names a task that does not exist, or a key that it does not have;
///         66 or 69 for a plug-in that is missing or cannot be loaded; 69 for ppo in a program
///         built without reinforcement learning
void require_known(config::Task const& chosen);

/// Throws  as require_known and as TaskKind::make
std::unique_ptr<Task> make_task(config::Task const& chosen, Samples const& samples);

/// The deck's task, which its model's file may describe.
///
/// Throws  as make_task
std::unique_ptr<Task> make_task_of(config::Deck const& deck, Samples samples);

/// Throws  as require_known
data::Labels labels_of(config::Task const& chosen);

/// Whether the deck's task learns from an environment, and not from data sets.
///
/// Throws  as require_known
bool is_played(config::Task const& chosen);

/// The environments that the deck's task acts in; null where it learns from data sets.
///
/// Throws  as require_known; Error 64 to 66 when the environment cannot be made from `files`
rl::EnvironmentMaker open_environment(config::Task const& chosen, std::string const& files);

/// The metrics that the deck's task declares, the first of which decides which model is best; a
/// task may measure more than these.
///
/// Throws  as require_known; 65 or 66 for a model's file that should describe its metrics
std::vector<MetricKind> metrics_of(config::Deck const& deck);

/// The metric of `kinds` that a deck calls `wanted`; null: none.
MetricKind const* find_metric(std::vector<MetricKind> const& kinds, std::string const& wanted);

/// The metric of the deck's task that is called `wanted`, which is the value of the deck's `key`;
/// the task's first metric when `wanted` is empty.
///
/// Throws  as require_known; Error 64 for a metric that it does not have, or one that is a table;
///         65 or 66 for a model's file that should describe its metrics
MetricKind metric_of(config::Deck const& deck, std::string const& key, std::string const& wanted);

/// The metrics that the deck asks for besides those that its task always measures: those that
/// task.metrics lists, and the one by which the best model is chosen.
///
/// Throws  as metric_of, for what task.metrics lists
std::vector<std::string> asked_metrics(config::Deck const& deck);

} // namespace lockstep::task
