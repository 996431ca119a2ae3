#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <torch/nn/functional/loss.h>

#include "class_counts.hpp"
#include "ranking.hpp"
#include "tasks.hpp"

namespace lockstep::task {

namespace {

std::int64_t labels_of_samples(Samples const& samples) {
    auto const& target = samples.targets.front();
    if (samples.targets.size() != 1 || target.ragged || target.shape.size() != 1) {
        throw Error(
            ExitCode::data,
            {"data.targets does not fit the task",
             concat("task.kind = multi-label needs one dataset of shape [samples, labels], "
                    "with 1 for each label that a sample has and 0 for the others, but ",
                    samples.targets.size() != 1
                        ? concat("data.targets names ", samples.targets.size(), " datasets")
                    : target.ragged
                        ? concat("the samples of dataset ", target.name, " have different lengths")
                        : concat("the samples of dataset ", target.name, " have the shape ",
                                 h5::shape_text(target.shape))),
             target.shape.empty() ? "Set task.kind = classification for one label a sample"
                                  : "Name such a dataset in data.targets"});
    }
    return static_cast<std::int64_t>(target.shape.front());
}

/// Any number of labels for each sample, each with binary cross entropy. A label is predicted where
/// its score is above 0, a probability above 0.5. Counts are those of each label, then the samples
/// whose labels are all right, and the samples.
class MultiLabel : public Task {
  public:
    explicit MultiLabel(Samples const& samples)
        : labels_(labels_of_samples(samples)),
          names_(samples.class_names), asked_{samples.ask_for("auroc"),
                                              samples.ask_for("average-precision")} {
        if (std::cmp_not_equal(names_.size(), labels_)) {
            names_.clear();
            for (std::int64_t i = 0; i < labels_; ++i) {
                names_.push_back(std::to_string(i));
            }
        }
    }

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto const truth = truth_of(batch);
        return {torch::nn::functional::binary_cross_entropy_with_logits(
                    logits_of(model, batch), truth,
                    torch::nn::functional::BinaryCrossEntropyWithLogitsFuncOptions().reduction(
                        torch::kSum)),
                static_cast<double>(truth.numel())};
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const truth = truth_of(batch);
        auto const logits = logits_of(model, batch);
        auto const losses = torch::nn::functional::binary_cross_entropy_with_logits(
            logits, truth,
            torch::nn::functional::BinaryCrossEntropyWithLogitsFuncOptions().reduction(
                torch::kNone));
        auto const guess = logits.gt(0);
        auto const truly = truth.gt(0.5);
        auto const counts =
            torch::cat(
                {torch::stack({guess.logical_and(truly).sum(0), truly.sum(0), guess.sum(0)}, 1)
                     .flatten(),
                 guess.eq(truly).all(1).sum().reshape({1})})
                .to(torch::kCPU)
                .contiguous();
        auto const* const first = counts.const_data_ptr<std::int64_t>();
        Tally tally{losses.sum(torch::kFloat64).item<double>(),
                    static_cast<double>(truth.numel()),
                    {first, first + counts.numel()}};
        tally.counts.push_back(truth.size(0));
        if (asked_.any()) {
            auto const rows = torch::cat({logits, truth}, 1).to(torch::kCPU).contiguous();
            auto const* const values = rows.const_data_ptr<float>();
            tally.scores.assign(values, values + rows.numel());
        }
        return tally;
    }

    /// The probability of each label.
    Prediction predict(nn::Model& model, nn::Fields const& inputs) const override {
        auto const probabilities = torch::sigmoid(logits_of(model, {inputs, {}}));
        return {.numbers = probabilities.to(torch::kCPU).contiguous()};
    }

    std::int64_t outputs() const override { return labels_; }
    std::size_t counts() const override {
        return counts_of_class * static_cast<std::size_t>(labels_) + 2;
    }
    std::size_t scores() const override {
        return asked_.any() ? 2 * static_cast<std::size_t>(labels_) : 0;
    }

    /// F1 averaged over the labels that occur or were predicted, F1 of all labels together, and the
    /// share of samples whose labels are all right.
    Metrics metrics(Tally const& total) const override {
        auto const of_labels = std::span(total.counts).first(counts() - 2);
        auto const scores = scores_of(of_labels);
        ClassScore together;
        for (auto const& score : scores) {
            together.hit += score.hit;
            together.truly += score.truly;
            together.predicted += score.predicted;
        }
        auto const samples = std::max<std::int64_t>(total.counts[counts() - 1], 1);
        Metrics metrics{{"micro-f1", together.present() ? together.f1() : 0},
                        {"subset-accuracy", static_cast<double>(total.counts[counts() - 2]) /
                                                static_cast<double>(samples)}};
        add_by_class(metrics, "f1", names_, scores, &ClassScore::f1);
        auto const labels = static_cast<std::size_t>(labels_);
        if (asked_.any()) {
            add_rankings(metrics, asked_, names_, [&](std::size_t label) {
                std::vector<Scored> scored(total.scores.size() / (2 * labels));
                for (std::size_t i = 0; i < scored.size(); ++i) {
                    auto const* const row = total.scores.data() + i * 2 * labels;
                    scored[i] = {row[label], row[labels + label] > 0.5F};
                }
                return scored;
            });
        }
        return metrics;
    }

  private:
    torch::Tensor truth_of(Tensors const& batch) const {
        auto const truth = batch.targets.only().to(torch::kFloat32);
        if (truth.is_cpu() && !truth.eq(0).logical_or(truth.eq(1)).all().item<bool>()) {
            auto const wrong =
                truth.masked_select(truth.eq(0).logical_or(truth.eq(1)).logical_not());
            throw Error(ExitCode::data,
                        {concat("value ", wrong[0].item<double>(), " among the targets"),
                         "task.kind = multi-label needs 1 for each label that a sample has, and 0 "
                         "for the others",
                         "Correct the data, or set task.kind = regression for real values"});
        }
        return truth;
    }

    /// In float32 whatever the model computes in.
    torch::Tensor logits_of(nn::Model& model, Tensors const& batch) const {
        auto const logits = model.forward(batch.inputs);
        if (logits.dim() != 2 || logits.size(1) != labels_) {
            throw Error(
                ExitCode::usage,
                {"task.kind = multi-label",
                 concat("the task needs an output of the shape [samples, ", labels_,
                        "], but the model returns the shape ", nn::sizes_text(logits.sizes())),
                 "Choose a model that returns one score for each label of a sample"});
        }
        return logits.to(torch::kFloat32);
    }

    std::int64_t labels_;
    std::vector<std::string> names_;
    AskedRankings asked_;
};

} // namespace

TaskKind multi_label_kind() {
    return {"multi-label",
            "any number of labels for each sample, with binary cross entropy as the loss",
            {},
            {{"f1"},
             {"micro-f1"},
             {"subset-accuracy"},
             {"loss", false},
             {"auroc", true, true},
             {"average-precision", true, true}},
            [](config::OwnValues const&, Samples const& samples) {
                return std::make_unique<MultiLabel>(samples);
            },
            nullptr,
            nullptr,
            data::Labels::none};
}

} // namespace lockstep::task
