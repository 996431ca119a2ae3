#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include "class_counts.hpp"
#include "cross_entropy.hpp"
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

/// Cross entropy over the classes of each place of a sample. Counts are over all places.
class Segmentation : public Task {
  public:
    Segmentation(config::OwnValues const& values, Samples const& samples)
        : names_(samples.class_names), classes_(classes_of(values, samples)),
          cross_entropy_(values.text("class-weights"), {}, classes_) {
        if (samples.targets.size() != 1 || samples.targets.front().ragged ||
            samples.targets.front().shape.empty()) {
            throw Error(ExitCode::data,
                        {"data.targets does not fit the task",
                         "task.kind = segmentation needs one dataset with a class for each "
                         "position of a sample",
                         "Name such a dataset, of shape [samples, positions...], in data.targets"});
        }
    }

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto const truth = truth_of(batch);
        return cross_entropy_.training_loss(logits_of(model, batch, truth), truth);
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const truth = truth_of(batch);
        return cross_entropy_.evaluate(logits_of(model, batch, truth), truth);
    }

    std::int64_t outputs() const override { return classes_; }
    std::int64_t classes_of_places() const override { return classes_; }
    std::size_t counts() const override {
        return counts_of_class * static_cast<std::size_t>(classes_);
    }
    std::vector<double> class_weights() const override { return cross_entropy_.class_weights(); }

    /// Intersection over union averaged over the classes that occur or were predicted, and the
    /// share of places that are right.
    Metrics metrics(Tally const& total) const override {
        auto const scores = scores_of(total.counts);
        Metrics metrics{{"accuracy", accuracy_of(scores)}};
        add_by_class(metrics, "iou", names_, scores, &ClassScore::intersection_over_union);
        return metrics;
    }

  private:
    /// Whole numbers, also from files that keep classes as real values. What a data set reads was
    /// looked at there, where samples have a place in a file: a device is not waited for.
    torch::Tensor truth_of(Tensors const& batch) const {
        auto const& given = batch.targets.only();
        if (given.is_cpu()) {
            require_classes(given);
        }
        return given.to(torch::kInt64);
    }

    void require_classes(torch::Tensor const& given) const {
        auto fits = given.ge(0).logical_and(given.lt(classes_)); // NaN is neither
        if (given.is_floating_point()) {
            fits = fits.logical_and(given.eq(given.trunc()));
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

    torch::Tensor logits_of(nn::Model& model, Tensors const& batch,
                            torch::Tensor const& truth) const {
        auto logits = model.forward(batch.inputs).to(torch::kFloat32);
        auto expected = truth.sizes().vec();
        expected.insert(expected.begin() + 1, classes_);
        if (logits.sizes() != torch::IntArrayRef(expected)) {
            throw Error(
                ExitCode::usage,
                {"task.kind = segmentation",
                 concat("the model returns the shape ", nn::sizes_text(logits.sizes()),
                        ", but the targets have the shape ", nn::sizes_text(truth.sizes())),
                 "Choose a model that returns [samples, classes, positions...], such as unet"});
        }
        return logits;
    }

    std::vector<std::string> names_;
    std::int64_t classes_;
    CrossEntropy cross_entropy_;
};

} // namespace

TaskKind segmentation_kind() {
    return {"segmentation",
            "one class for each position of a sample, with cross entropy as the loss",
            {{"classes", "0", "number of classes; 0: the number that the files state"},
             {"class-weights", "none",
              "class weights of the training loss: none, or a number for each class"}},
            {{"iou"}, {"accuracy"}, {"loss", false}},
            [](config::OwnValues const& values, Samples const& samples) {
                return std::make_unique<Segmentation>(values, samples);
            }};
}

} // namespace lockstep::task
