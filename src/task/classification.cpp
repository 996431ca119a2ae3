#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"
#include "nn/advised_model.hpp"

#include "class_counts.hpp"
#include "class_metrics.hpp"
#include "cross_entropy.hpp"
#include "tasks.hpp"

namespace lockstep::task {

namespace {

void require_labels(Samples const& samples) {
    auto const refuse = [](std::string const& found, std::string const& next) {
        throw Error(
            ExitCode::data,
            {"data.targets does not fit the task",
             concat("task.kind = classification needs one label for each sample, but ", found),
             next});
    };
    if (samples.targets.size() != 1) {
        refuse(concat("data.targets names ", samples.targets.size(), " datasets"),
               "Name one dataset of whole numbers, one for each sample");
    }
    auto const& target = samples.targets.front();
    if (target.is_label()) {
        return;
    }
    if (target.ragged) {
        refuse(concat("dataset ", target.name, " has samples of different lengths"),
               "Name a dataset with one whole number for each sample in data.targets, or set "
               "task.kind = ctc if it holds transcripts");
    }
    auto const values = h5::elements(target.shape);
    if (values > 1) {
        refuse(concat("dataset ", target.name, " has ", values, " values for each, of shape ",
                      h5::shape_text(target.shape)),
               "If one of the values is 1 and all others are 0 (one-hot), store the place of the "
               "1 as a whole number instead (numpy: targets.argmax(axis=1)). For real values, set "
               "task.kind = regression; for a class at each position, set task.kind = "
               "segmentation");
    }
    refuse(concat("dataset ", target.name, " has values of type ", h5::name_of(target.type)),
           "If they are classes, store them as whole numbers (numpy: "
           "targets.astype(\"int64\")). For real values, set task.kind = regression");
}

/// Cross entropy over classes.
class Classification : public Task {
  public:
    Classification(config::OwnValues const& values, Samples const& samples)
        : names_(samples.class_names),
          cross_entropy_((require_labels(samples), values.text("class-weights")),
                         samples.class_counts, static_cast<std::int64_t>(names_.size()),
                         values.number("label-smoothing", 0, 0.999)),
          more_(samples, names_, cross_entropy_.classes()) {}

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto const logits = logits_of(model, batch);
        if (batch.targets.size() == 3 && batch.samples() > 0) {
            return loss_of_mixed(logits, batch.targets);
        }
        auto const& labels = batch.targets.only();
        auto loss = cross_entropy_.training_loss(logits, labels);
        loss.counts =
            training_counts_of(logits.detach().argmax(1), labels, cross_entropy_.classes());
        return loss;
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const logits = logits_of(model, batch);
        auto const& labels = batch.targets.only();
        auto tally = cross_entropy_.evaluate(logits, labels);
        more_.add_predictions(tally, logits, labels);
        more_.add_scores(tally, logits, labels);
        return tally;
    }

    Predicts predicts() const override { return Predicts::classes; }
    Prediction predict(nn::Model& model, nn::Fields const& inputs) const override {
        auto const probabilities = torch::softmax(logits_of(model, {inputs, {}}), 1);
        return {.numbers = probabilities.to(torch::kCPU).contiguous()};
    }

    std::int64_t outputs() const override { return cross_entropy_.classes(); }
    std::size_t counts() const override { return more_.counts(); }
    std::size_t sums() const override { return more_.sums(); }
    std::size_t scores() const override { return more_.scores(); }
    std::size_t training_counts() const override {
        return counts_of_class * counted_classes(cross_entropy_.classes());
    }
    Metrics training_metrics(std::vector<std::int64_t> const& counts) const override {
        auto const scores = scores_of(counts);
        Metrics metrics{{"accuracy", accuracy_of(scores)}};
        if (scores.size() == names_.size()) {
            metrics["f1"] = mean_score(scores, &ClassScore::f1);
        }
        return metrics;
    }
    std::vector<double> class_weights() const override { return cross_entropy_.class_weights(); }

    /// Accuracy, and F1 averaged over the classes that occur or were predicted (macro F1, as
    /// scikit-learn's f1_score(average="macro") gives it).
    Metrics metrics(Tally const& total) const override {
        auto const scores = more_.of_classes(total);
        Metrics metrics{{"accuracy", accuracy_of(scores)}};
        add_by_class(metrics, "f1", names_, scores, &ClassScore::f1);
        more_.put(metrics, total);
        return metrics;
    }
    std::vector<std::int64_t> confusion(Tally const& total) const override {
        return more_.confusion(total);
    }

  private:
    /// Learns samples that were mixed with others: `targets` are their labels, those of the others,
    /// and the share of their own, which is the same for all. The heavier label counts.
    Loss loss_of_mixed(torch::Tensor const& logits, nn::Fields const& targets) const {
        auto const share = targets[2].values[0];
        auto const own = share.ge(0.5);
        auto const heavier = torch::where(own, targets[0].values, targets[1].values);
        auto const lighter = torch::where(own, targets[1].values, targets[0].values);
        auto const most = torch::maximum(share, 1 - share);
        auto loss = cross_entropy_.training_loss(logits, heavier);
        auto const other = cross_entropy_.training_loss(logits, lighter);
        loss.sum = loss.sum * most + other.sum * (1 - most);
        if (loss.weight != other.weight) { // of classes
            auto const part = most.item<double>();
            loss.weight = loss.weight * part + other.weight * (1 - part);
        }
        loss.counts =
            training_counts_of(logits.detach().argmax(1), heavier, cross_entropy_.classes());
        return loss;
    }

    /// In float32 whatever the model computes in.
    torch::Tensor logits_of(nn::Model& model, Tensors const& batch) const {
        auto const logits = model.forward(batch.inputs);
        if (logits.dim() != 2) {
            throw Error(
                ExitCode::usage,
                {"task.kind = classification",
                 concat("the task needs an output of 2 dimensions, [samples, classes], but "
                        "the model's output has ",
                        logits.dim()),
                 concat(nn::advised_model(static_cast<std::size_t>(batch.inputs[0].values.dim()) -
                                              (batch.inputs[0].lengths.defined() ? 0 : 1),
                                          batch.inputs[0].lengths.defined(),
                                          !batch.inputs[0].values.is_floating_point()),
                        ", or set task.kind = ctc or segmentation")});
        }
        if (logits.size(1) != cross_entropy_.classes()) {
            throw Error(
                ExitCode::usage,
                {"task.kind = classification",
                 concat("the model returns ", amount_of(logits.size(1), "score"),
                        " per sample, but there are ", cross_entropy_.classes(), " classes"),
                 "Choose a model that gives one score for each class (policies fit only task.kind "
                 "= ppo)"});
        }
        return logits.to(torch::kFloat32);
    }

    std::vector<std::string> names_;
    CrossEntropy cross_entropy_;
    ClassMetrics more_;
};

} // namespace

TaskKind classification_kind() {
    return {"classification",
            "one class for each sample, with cross entropy as the loss",
            {{"label-smoothing", "0", "share of the target that is spread over all classes"},
             {"class-weights", "none",
              "class weights of the training loss: none; balanced or median, both computed from "
              "the class counts of the training set; or a number for each class"}},
            ClassMetrics::with_own({{"accuracy"}, {"f1"}, {"loss", false}}, true),
            [](config::OwnValues const& values, Samples const& samples) {
                return std::make_unique<Classification>(values, samples);
            },
            nullptr,
            nullptr,
            data::Labels::classes};
}

} // namespace lockstep::task
