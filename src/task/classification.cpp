#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/h5/file.hpp"

#include "class_weights.hpp"
#include "confusion.hpp"
#include "tasks.hpp"

namespace lockstep::task {

namespace {

void require_labels(Samples const& samples) {
    bool const labels = samples.targets.size() == 1 && samples.targets.front().whole &&
                        !samples.targets.front().ragged &&
                        h5::elements(samples.targets.front().shape) == 1;
    if (!labels) {
        throw Error(ExitCode::data,
                    {"the samples' targets", "task.kind = classification learns one label a sample",
                     "Name a dataset of whole numbers, one a sample, in data.targets"});
    }
}

/// Cross entropy over classes. Counts are the confusion matrix.
class Classification : public Task {
  public:
    Classification(config::OwnValues const& values, Samples const& samples)
        : names_(samples.class_names), classes_(static_cast<std::int64_t>(names_.size())),
          label_smoothing_(values.number("label-smoothing", 0, 0.999)) {
        require_labels(samples);
        weights_ =
            task::class_weights(values.text("class-weights"), samples.class_counts, classes_);
        weighted_ = values.text("class-weights") != "none";
    }

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        // Losses are in float32 whatever the model computes in.
        auto const logits = model.forward(batch.inputs).to(torch::kFloat32);
        auto const& labels = batch.targets.only();
        auto options = torch::nn::functional::CrossEntropyFuncOptions()
                           .reduction(torch::kSum)
                           .label_smoothing(label_smoothing_);
        double weight = static_cast<double>(labels.size(0));
        if (weighted_) {
            auto const weights = torch::tensor(weights_, torch::kFloat64).to(logits.device());
            options.weight(weights.to(torch::kFloat32));
            weight = weights.index_select(0, labels).sum().item<double>();
        }
        auto sum = torch::nn::functional::cross_entropy(logits, labels, options);
        auto const correct = logits.detach().argmax(1).eq(labels).sum();
        return {std::move(sum), weight, correct.item<std::int64_t>()};
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const logits = model.forward(batch.inputs).to(torch::kFloat32);
        auto const& labels = batch.targets.only();
        auto const losses = torch::nn::functional::cross_entropy(
            logits, labels,
            torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
        return {losses.sum(torch::kFloat64).item<double>(), static_cast<double>(labels.size(0)),
                confusion_of(logits.argmax(1), labels, classes_)};
    }

    std::int64_t outputs() const override { return classes_; }
    std::size_t counts() const override { return static_cast<std::size_t>(classes_ * classes_); }
    bool knows_correct() const override { return true; }
    std::vector<double> class_weights() const override {
        return weighted_ ? weights_ : std::vector<double>{};
    }

    /// Accuracy, and F1 averaged over the classes that occur or were predicted (macro F1, as
    /// scikit-learn's f1_score(average="macro") gives it).
    Metrics metrics(Tally const& total) const override {
        auto const scores = scores_of(total.counts);
        Metrics metrics{{"accuracy", accuracy_of(scores)}};
        add_by_class(metrics, "f1", names_, scores, &ClassScore::f1);
        return metrics;
    }

  private:
    std::vector<std::string> names_;
    std::int64_t classes_;
    double label_smoothing_;
    std::vector<double> weights_;
    bool weighted_ = false;
};

} // namespace

TaskKind classification_kind() {
    return {"classification",
            "cross entropy over classes",
            {{"label-smoothing", "0", "share of the target spread over all classes"},
             {"class-weights", "none",
              "none, balanced, median or a list: of the training loss, by the training set's "
              "counts"}},
            {{"accuracy"}, {"f1"}, {"loss", false}},
            [](config::OwnValues const& values, Samples const& samples) {
                return std::make_unique<Classification>(values, samples);
            }};
}

} // namespace lockstep::task
