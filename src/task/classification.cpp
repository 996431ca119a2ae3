#include "classification.hpp"

#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"

namespace lockstep::task {

namespace {

/// Cross entropy over classes. Counts are the confusion matrix [true class, predicted class].
class Classification : public Task {
  public:
    Classification(config::OwnValues const& values, std::int64_t classes)
        : classes_(classes), label_smoothing_(values.number("label-smoothing", 0, 0.999)) {}

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        // Losses are in float32 whatever the model computes in.
        auto const logits = model.forward(batch.inputs).to(torch::kFloat32);
        auto const options = torch::nn::functional::CrossEntropyFuncOptions()
                                 .reduction(torch::kSum)
                                 .label_smoothing(label_smoothing_);
        auto sum = torch::nn::functional::cross_entropy(logits, batch.targets, options);
        auto const correct = logits.detach().argmax(1).eq(batch.targets).sum();
        return {std::move(sum), static_cast<double>(batch.targets.size(0)),
                correct.item<std::int64_t>()};
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const logits = model.forward(batch.inputs).to(torch::kFloat32);
        auto const losses = torch::nn::functional::cross_entropy(
            logits, batch.targets,
            torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
        Tally tally{losses.sum(torch::kFloat64).item<double>(),
                    static_cast<double>(batch.targets.size(0)),
                    std::vector<std::int64_t>(counts(), 0)};
        auto const predicted = logits.argmax(1).to(torch::kCPU).contiguous();
        auto const targets = batch.targets.to(torch::kCPU).contiguous();
        auto const* const guess = predicted.const_data_ptr<std::int64_t>();
        auto const* const truth = targets.const_data_ptr<std::int64_t>();
        for (std::int64_t i = 0; i < targets.size(0); ++i) {
            ++tally.counts[static_cast<std::size_t>(truth[i] * classes_ + guess[i])];
        }
        return tally;
    }

    std::size_t counts() const override { return static_cast<std::size_t>(classes_ * classes_); }

    /// Accuracy, and F1 averaged over the classes that occur or were predicted (macro F1, as
    /// scikit-learn's f1_score(average="macro") gives it).
    Metrics metrics(std::vector<std::int64_t> const& confusion) const override {
        auto const classes = static_cast<std::size_t>(classes_);
        std::int64_t total = 0;
        std::int64_t correct = 0;
        double f1_sum = 0;
        int present = 0;
        for (std::size_t label = 0; label < classes; ++label) {
            std::int64_t truly = 0;
            std::int64_t predicted = 0;
            for (std::size_t other = 0; other < classes; ++other) {
                truly += confusion[label * classes + other];
                predicted += confusion[other * classes + label];
            }
            auto const hit = confusion[label * classes + label];
            total += truly;
            correct += hit;
            if (truly + predicted > 0) {
                f1_sum += 2.0 * static_cast<double>(hit) / static_cast<double>(truly + predicted);
                ++present;
            }
        }
        return {{"accuracy",
                 total == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(total)},
                {"f1", present == 0 ? 0 : f1_sum / present}};
    }

    bool more_is_better(std::string const& metric) const override {
        if (metric == "loss") {
            return false;
        }
        if (metric == "accuracy" || metric == "f1") {
            return true;
        }
        throw Error(ExitCode::usage,
                    {concat("metric ", metric), "classification has accuracy, f1 and loss",
                     "Correct task.metric or checkpoint.best"});
    }

  private:
    std::int64_t classes_;
    double label_smoothing_;
};

} // namespace

TaskKind classification_kind() {
    return {"classification",
            "cross entropy over classes",
            {{"label-smoothing", "0", "share of the target spread over all classes"}},
            {"accuracy", "f1", "loss"},
            [](config::OwnValues const& values, std::int64_t classes) {
                return std::make_unique<Classification>(values, classes);
            }};
}

} // namespace lockstep::task
