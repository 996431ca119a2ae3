#include "task/distilled.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace lockstep::task {

bool learns_classes(std::string const& kind) {
    if (kind == "classification" || kind == "segmentation" || kind == "language") {
        return true;
    }
    if (kind != "regression") {
        throw Error(ExitCode::usage, {concat("distill.teacher with task.kind = ", kind),
                                      "only classification, segmentation, language and regression "
                                      "can learn from a teacher's outputs",
                                      "Remove distill.teacher, or choose one of these tasks"});
    }
    return false;
}

torch::Tensor distance_to(torch::Tensor const& teacher, torch::Tensor const& student,
                          Lesson const& lesson) {
    if (!lesson.of_classes) {
        auto const values = std::max<std::int64_t>(student.numel(), 1);
        return torch::mse_loss(student, teacher, at::Reduction::Sum) / values;
    }
    auto const temperature = lesson.options.temperature;
    auto const expected = torch::log_softmax(teacher / temperature, 1);
    auto const given = torch::log_softmax(student / temperature, 1);
    auto const places =
        std::max<std::int64_t>(student.numel() / std::max<std::int64_t>(student.size(1), 1), 1);
    return torch::kl_div(given, expected, at::Reduction::Sum, /*log_target=*/true) *
           (temperature * temperature / static_cast<double>(places));
}

namespace {

/// A model whose last outputs are kept, so that a second loss needs no second forward.
class KeptOutputs : public nn::Model {
  public:
    explicit KeptOutputs(nn::Model& model) : model_(model) {}

    torch::Tensor forward(nn::Fields const& inputs) override {
        outputs = model_.forward(inputs);
        return outputs;
    }

    torch::Tensor outputs;

  private:
    nn::Model& model_;
};

/// Lends teachers to threads, one to each at a time. They compute the same.
class Lent {
  public:
    explicit Lent(std::vector<std::shared_ptr<nn::Model>> models) : free_(std::move(models)) {}

    torch::Tensor forward(nn::Fields const& inputs) {
        auto const model = take();
        torch::Tensor outputs;
        try {
            torch::NoGradGuard const no_grad;
            outputs = model->forward(inputs).detach();
        } catch (...) {
            give(model);
            throw;
        }
        give(model);
        return outputs;
    }

  private:
    std::shared_ptr<nn::Model> take() {
        std::unique_lock lock(mutex_);
        given_.wait(lock, [this] { return !free_.empty(); });
        auto model = std::move(free_.back());
        free_.pop_back();
        return model;
    }

    void give(std::shared_ptr<nn::Model> model) {
        {
            std::lock_guard const lock(mutex_);
            free_.push_back(std::move(model));
        }
        given_.notify_one();
    }

    std::mutex mutex_;
    std::condition_variable given_;
    std::vector<std::shared_ptr<nn::Model>> free_;
};

class Distilled : public Task {
  public:
    Distilled(std::unique_ptr<Task> task, Lesson lesson)
        : task_(std::move(task)), lesson_(std::move(lesson)), teachers_(lesson_.teachers) {}

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        KeptOutputs kept(model);
        auto loss = task_->training_loss(kept, batch);
        auto const student = kept.outputs.to(torch::kFloat32);
        auto const teacher = teachers_.forward(batch.inputs).to(torch::kFloat32);
        if (teacher.sizes() != student.sizes()) {
            throw Error(ExitCode::usage,
                        {"distill.teacher does not fit the model",
                         concat("the teacher's outputs are ", nn::sizes_text(teacher.sizes()),
                                ", but the model's outputs are ", nn::sizes_text(student.sizes())),
                         "Choose a teacher whose outputs have the shape of the model's outputs"});
        }
        // As much of the step's sum as the targets' part.
        auto const distance = distance_to(teacher, student, lesson_) * loss.weight;
        auto const own = torch::stack({loss.sum.detach(), distance.detach()}).to(torch::kFloat64);
        loss.figures = loss.figures.defined() ? torch::cat({loss.figures, own}) : own;
        auto const share = lesson_.options.weight;
        loss.sum = loss.sum * (1 - share) + distance * share;
        return loss;
    }

    std::vector<std::string> figures() const override {
        auto names = task_->figures();
        names.insert(names.end(), {"target_loss", "teacher_loss"});
        return names;
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        return task_->evaluate(model, batch);
    }
    std::int64_t outputs() const override { return task_->outputs(); }
    std::size_t counts() const override { return task_->counts(); }
    std::size_t sums() const override { return task_->sums(); }
    Metrics metrics(Tally const& total) const override { return task_->metrics(total); }
    std::size_t training_counts() const override { return task_->training_counts(); }
    Metrics training_metrics(std::vector<std::int64_t> const& counts) const override {
        return task_->training_metrics(counts);
    }
    std::vector<double> class_weights() const override { return task_->class_weights(); }
    std::int64_t classes_of_places() const override { return task_->classes_of_places(); }

  private:
    std::unique_ptr<Task> task_;
    Lesson lesson_;
    mutable Lent teachers_;
};

} // namespace

std::unique_ptr<Task> distilled(std::unique_ptr<Task> task, Lesson lesson) {
    return std::make_unique<Distilled>(std::move(task), std::move(lesson));
}

} // namespace lockstep::task
