#include "base/number.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include "class_counts.hpp"
#include "class_metrics.hpp"
#include "cross_entropy.hpp"
#include "dice.hpp"
#include "tasks.hpp"

namespace lockstep::task {

namespace {

std::int64_t classes_of(config::OwnValues const& values, Samples const& samples) {
    auto const given = values.integer("classes", 0);
    auto const named = static_cast<std::int64_t>(samples.class_names.size());
    if (given == 0 && named == 0) {
        throw Error(ExitCode::usage,
                    {"task.classes is not set", "the data files do not name their classes",
                     "Set task.classes to the number of classes"});
    }
    return given == 0 ? named : given;
}

std::optional<std::int64_t> ignored_label_of(config::OwnValues const& values) {
    auto const text = values.text("ignore-label");
    auto const label = number_of<std::int64_t>(text);
    if (!label && text != "none") {
        throw Error(ExitCode::usage,
                    {concat("task.ignore-label = ", text), "expected a whole number, or none",
                     "Set it to the label of the places that do not count"});
    }
    return label;
}

std::string loss_name_of(config::OwnValues const& values) {
    auto loss = values.choice("loss", {"cross-entropy", "dice", "both"});
    if (loss == "dice" && values.text("class-weights") != "none") {
        throw Error(ExitCode::usage,
                    {"task.class-weights cannot be combined with task.loss = dice",
                     "weights of classes are for the cross entropy; in the Dice loss, all classes "
                     "count alike whatever their sizes",
                     "Remove task.class-weights, or set task.loss = both"});
    }
    return loss;
}

void require_places(Samples const& samples) {
    auto const& target = samples.targets.front();
    if (samples.targets.size() == 1 && target.shape.empty() && !target.ragged) {
        throw Error(ExitCode::data,
                    {"data.targets does not fit the task",
                     concat("task.kind = segmentation needs a class for each position of a "
                            "sample, but dataset ",
                            target.name, " has one number for each sample"),
                     concat("Set task.kind = ", target.is_label() ? "classification" : "regression",
                            ", or name a dataset of shape [samples, positions...] in "
                            "data.targets")});
    }
    if (samples.targets.size() != 1 || target.ragged) {
        throw Error(
            ExitCode::data,
            {"data.targets does not fit the task",
             concat("task.kind = segmentation needs one dataset with a class for each "
                    "position of a sample, but ",
                    target.ragged
                        ? concat("the samples of dataset ", target.name, " have different lengths")
                        : concat("data.targets names ", samples.targets.size(), " datasets")),
             "Name such a dataset, of shape [samples, positions...], in data.targets"});
    }
}

/// Cross entropy over the classes of each place of a sample, the Dice loss of each sample, or both.
/// Counts are over all places.
class Segmentation : public Task {
  public:
    Segmentation(config::OwnValues const& values, Samples const& samples)
        : names_((require_places(samples), samples.class_names)),
          classes_(classes_of(values, samples)),
          cross_entropy_(values.text("class-weights"), {}, classes_),
          more_(samples, names_, classes_), loss_(loss_name_of(values)),
          ignored_(ignored_label_of(values)), tells_dice_(samples.ask_for("dice")) {
        if (ignored_) {
            cross_entropy_.ignore_places();
        }
    }

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto truth = truth_of(batch);
        auto const logits = logits_of(model, batch, truth);
        return loss_ == "cross-entropy"
                   ? cross_entropy_.training_loss(logits, truth)
                   : Loss{losses_of(logits, truth, true).sum(), samples_that_count(truth)};
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto truth = truth_of(batch);
        auto const logits = logits_of(model, batch, truth);
        auto tally = cross_entropy_.evaluate(logits, truth);
        if (loss_ != "cross-entropy") {
            tally.loss_sum = losses_of(logits, truth, false).sum(torch::kFloat64).item<double>();
            tally.weight = samples_that_count(truth);
        }
        more_.add_predictions(tally, logits, truth);
        return tally;
    }

    Predicts predicts() const override { return Predicts::places; }
    Prediction predict(nn::Model& model, nn::Fields const& inputs) const override {
        auto const logits = model.forward(inputs).to(torch::kFloat32);
        if (logits.dim() < 3 || logits.size(1) != classes_) {
            throw misfit(logits.sizes().vec(), {});
        }
        return {.numbers = logits.argmax(1).to(torch::kCPU).contiguous()};
    }

    std::int64_t outputs() const override { return classes_; }
    std::int64_t classes_of_places() const override { return classes_; }
    std::optional<std::int64_t> ignored_class() const override { return ignored_; }
    torch::Tensor counted(Tensors const& batch) const override {
        if (!ignored_) {
            return {};
        }
        auto truth = truth_of(batch); // masks may be stored with a channel, as pictures are
        if (truth.dim() == batch.inputs.only().dim()) {
            truth = truth.squeeze(truth.size(1) == 1 ? 1 : -1);
        }
        return truth.ge(0);
    }
    std::size_t counts() const override { return more_.counts(); }
    std::vector<double> class_weights() const override { return cross_entropy_.class_weights(); }

    /// Intersection over union averaged over the classes that occur or were predicted, and the
    /// share of places that are right.
    Metrics metrics(Tally const& total) const override {
        auto const scores = more_.of_classes(total);
        Metrics metrics{{"accuracy", accuracy_of(scores)}};
        add_by_class(metrics, "iou", names_, scores, &ClassScore::intersection_over_union);
        if (tells_dice_) {
            add_by_class(metrics, "dice", names_, scores, &ClassScore::f1);
        }
        more_.put(metrics, total);
        return metrics;
    }
    std::vector<std::int64_t> confusion(Tally const& total) const override {
        return more_.confusion(total);
    }

  private:
    /// Whole numbers, also from files that keep classes as real values. What a data set reads was
    /// looked at there, where samples have a place in a file: a device is not waited for.
    torch::Tensor truth_of(Tensors const& batch) const {
        auto const& given = batch.targets.only();
        if (given.is_cpu()) {
            require_classes(given);
        }
        auto const truth = given.to(torch::kInt64);
        return ignored_ ? truth.masked_fill(truth.eq(*ignored_), ignored_place) : truth;
    }

    /// Shape  [samples]
    torch::Tensor losses_of(torch::Tensor const& logits, torch::Tensor const& truth,
                            bool weighted) const {
        auto const dice = dice_losses(logits, truth);
        return loss_ == "both" ? dice + cross_entropy_.means(logits, truth, weighted) : dice;
    }

    double samples_that_count(torch::Tensor const& truth) const {
        return static_cast<double>(
            ignored_ ? truth.ge(0).flatten(1).any(1).sum().item<std::int64_t>() : truth.size(0));
    }

    void require_classes(torch::Tensor const& given) const {
        auto fits = given.ge(0).logical_and(given.lt(classes_)); // NaN is neither
        if (given.is_floating_point()) {
            fits = fits.logical_and(given.eq(given.trunc()));
        }
        if (ignored_) {
            fits = fits.logical_or(given.eq(*ignored_));
        }
        if (!fits.all().item<bool>()) {
            auto const wrong = given.masked_select(fits.logical_not())[0];
            throw Error(ExitCode::data,
                        {concat("label ", wrong.item<double>(), " among the targets"),
                         concat("labels of ", classes_, " classes must be whole numbers from 0 to ",
                                classes_ - 1),
                         "Correct the data, or set task.classes"});
        }
    }

    /// Makes `truth` a class for each position of the logits: masks may be stored with a channel.
    torch::Tensor logits_of(nn::Model& model, Tensors const& batch, torch::Tensor& truth) const {
        auto logits = model.forward(batch.inputs).to(torch::kFloat32);
        auto places = logits.sizes().vec();
        if (logits.dim() > 2) {
            places.erase(places.begin() + 1);
            for (auto const axis : {std::int64_t{1}, truth.dim() - 1}) {
                if (truth.dim() == logits.dim() && truth.squeeze(axis).sizes() == places) {
                    truth = truth.squeeze(axis);
                }
            }
        }
        if (logits.dim() < 3 || logits.size(1) != classes_ || truth.sizes() != places) {
            throw misfit(logits.sizes().vec(), truth.sizes().vec());
        }
        return logits;
    }

    Error misfit(std::vector<std::int64_t> const& given,
                 std::vector<std::int64_t> const& truth) const {
        auto const error = [](std::string why, std::string next) {
            return Error(ExitCode::usage,
                         {"task.kind = segmentation", std::move(why), std::move(next)});
        };
        if (given.size() < 3) {
            bool const one = truth.size() > 3 && (truth[1] == 1 || truth.back() == 1); // channel
            auto const dimensions = std::ssize(truth) - (one ? 2 : 1);
            return error(concat("the model returns the shape ", nn::sizes_text(given),
                                ", which has no positions, but the targets have the shape ",
                                nn::sizes_text(truth)),
                         concat("Choose a model that returns [samples, classes, positions...]: ",
                                dimensions == 2   ? "unet for pictures"
                                : dimensions == 3 ? "unet3d for volumes"
                                                  : "no built-in model does for other than two or "
                                                    "three dimensions of positions, so export one "
                                                    "from PyTorch (model.name = export)"));
        }
        if (given[1] != classes_) {
            return error(concat("the model returns ", amount_of(given[1], "score"),
                                " for each position, but there are ", classes_, " classes"),
                         "Choose a model that gives one score for each class, or set task.classes");
        }
        auto places = given;
        places.erase(places.begin() + 1);
        for (auto const axis : {std::size_t{1}, truth.size() - 1}) {
            auto of_each = truth;
            of_each.erase(of_each.begin() + static_cast<std::ptrdiff_t>(axis));
            if (of_each == places) {
                return error(concat("the targets have the shape ", nn::sizes_text(truth), ": ",
                                    truth[axis], " values for each of the positions ",
                                    nn::sizes_text(places), " (samples first)"),
                             concat("Store one class for each position. If one of these values is "
                                    "1 and all others are 0 (one-hot), store the place of the 1 "
                                    "as a whole number (numpy: targets.argmax(axis=",
                                    axis, "))"));
            }
        }
        return error(concat("the model returns scores for the positions ", nn::sizes_text(places),
                            " (samples first), but the targets have the shape ",
                            nn::sizes_text(truth)),
                     "Store one class for each of these positions, or choose a model that returns "
                     "scores for the positions of the targets");
    }

    std::vector<std::string> names_;
    std::int64_t classes_;
    CrossEntropy cross_entropy_;
    ClassMetrics more_;
    std::string loss_;
    std::optional<std::int64_t> ignored_;
    bool tells_dice_;
};

} // namespace

TaskKind segmentation_kind() {
    return {"segmentation",
            "one class for each position of a sample, with cross entropy as the loss",
            {{"classes", "0", "number of classes; 0: the number that the files state"},
             {"loss", "cross-entropy",
              "loss function: cross-entropy; dice, the mean of 1 - Dice over classes and samples; "
              "or both, their sum for each sample"},
             {"ignore-label", "none",
              "label of positions that count neither in the loss nor in the metrics; none: all "
              "count"},
             {"class-weights", "none",
              "class weights of the training loss: none, or a number for each class"}},
            ClassMetrics::with_own({{"iou"}, {"accuracy"}, {"loss", false}, {"dice", true, true}},
                                   false),
            [](config::OwnValues const& values, Samples const& samples) {
                return std::make_unique<Segmentation>(values, samples);
            },
            nullptr,
            nullptr,
            data::Labels::none};
}

} // namespace lockstep::task
