#include "task/distilled.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "data/convert.hpp"
#include "lockstep/base/error.hpp"
#include "nn/evaluation_mode.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace lockstep::task {

bool learns_classes(std::string const& kind, std::string const& key) {
    if (kind == "classification" || kind == "segmentation" || kind == "language") {
        return true;
    }
    if (kind != "regression") {
        throw Error(ExitCode::usage, {concat(key, " cannot be combined with task.kind = ", kind),
                                      "only classification, segmentation, language and regression "
                                      "can learn from a teacher's outputs",
                                      concat("Remove ", key, ", or choose one of these tasks")});
    }
    return false;
}

torch::Tensor distance_to(torch::Tensor const& teacher, torch::Tensor const& student,
                          Lesson const& lesson, torch::Tensor const& counted) {
    if (!lesson.of_classes) {
        auto const values = std::max<std::int64_t>(student.numel(), 1);
        return torch::mse_loss(student, teacher, at::Reduction::Sum) / values;
    }
    auto const temperature = lesson.options.temperature;
    auto const expected = torch::log_softmax(teacher / temperature, 1);
    auto const given = torch::log_softmax(student / temperature, 1);
    if (counted.defined()) {
        auto const each =
            torch::kl_div(given, expected, at::Reduction::None, /*log_target=*/true).sum(1);
        return each.masked_fill(counted.logical_not(), 0).sum() * (temperature * temperature) /
               counted.sum().clamp_min(1);
    }
    auto const places =
        std::max<std::int64_t>(student.numel() / std::max<std::int64_t>(student.size(1), 1), 1);
    return torch::kl_div(given, expected, at::Reduction::Sum, /*log_target=*/true) *
           (temperature * temperature / static_cast<double>(places));
}

namespace {

/// The extents that differ, without the first.
std::vector<std::int64_t> other_extents(torch::Tensor const& a, torch::Tensor const& b) {
    std::vector<std::int64_t> other;
    for (std::int64_t at = 1; at < a.dim(); ++at) {
        if (a.size(at) != b.size(at)) {
            other.push_back(at);
        }
    }
    return other;
}

torch::Tensor map_of(torch::Tensor const& outputs, std::int64_t width) {
    auto const squares = outputs.square().mean(width).flatten(1);
    constexpr double smallest = 1e-12;
    return squares / squares.norm(2, {1}, /*keepdim=*/true).clamp_min(smallest);
}

} // namespace

torch::Tensor hidden_distance(torch::Tensor const& teacher, torch::Tensor const& student,
                              config::HiddenPair const& pair) {
    if (teacher.sizes() == student.sizes()) {
        auto const values = std::max<std::int64_t>(student.numel(), 1);
        return torch::mse_loss(student, teacher, at::Reduction::Sum) / values;
    }
    auto const other = teacher.dim() == student.dim() && student.dim() > 2
                           ? other_extents(teacher, student)
                           : std::vector<std::int64_t>{};
    if (other.size() != 1 || teacher.size(0) != student.size(0)) {
        throw Error(
            ExitCode::usage,
            {concat("distill.hidden = ", pair.student, ":", pair.teacher),
             concat(
                 "the layer of this run's model has outputs of ", nn::sizes_text(student.sizes()),
                 ", but the layer of the teacher has outputs of ", nn::sizes_text(teacher.sizes())),
             "Choose two layers whose outputs have the same shape. If the outputs have at least "
             "three dimensions, one dimension other than the batch may differ"});
    }
    return torch::mse_loss(map_of(student, other.front()), map_of(teacher, other.front()),
                           at::Reduction::Sum) /
           std::max<std::int64_t>(student.size(0), 1);
}

namespace {

/// What a model computed for a batch.
struct Answer {
    torch::Tensor outputs;
    std::vector<torch::Tensor> hidden; ///< of the named layers, in their order
};

/// Throws  Error 64 for a layer that `whose` model does not have
void require_layers(std::vector<std::string> const& wanted, nn::HiddenStates const& states,
                    std::string const& whose) {
    auto const outputs = states.outputs();
    for (std::size_t at = 0; at < wanted.size(); ++at) {
        if (outputs[at].defined()) {
            continue;
        }
        auto const what = concat("distill.hidden: ", whose, " has no layer ", wanted[at]);
        if (states.layers().empty()) {
            throw Error(ExitCode::usage,
                        {what, "this kind of model does not name its layers",
                         "Remove distill.hidden, or use a built-in model or a program of "
                         "torch.export"});
        }
        throw Error(ExitCode::usage,
                    {what, concat("its layers are ", joined(states.layers(), ", ")),
                     "Name one of these layers"});
    }
}

Answer run(nn::Model& model, nn::Fields const& inputs, std::vector<std::string> const& layers,
           std::string const& whose) {
    if (layers.empty()) {
        return {model.forward(inputs), {}};
    }
    nn::HiddenStates states(layers);
    model.keep_hidden(&states);
    Answer answer;
    try {
        answer.outputs = model.forward(inputs);
    } catch (...) {
        model.keep_hidden(nullptr);
        throw;
    }
    model.keep_hidden(nullptr);
    require_layers(layers, states, whose);
    for (auto const& outputs : states.outputs()) {
        answer.hidden.push_back(outputs.to(torch::kFloat32));
    }
    return answer;
}

/// A model whose last answer is kept, so that a second loss needs no second forward.
class KeptAnswer : public nn::Model {
  public:
    KeptAnswer(nn::Model& model, std::vector<std::string> const& layers)
        : model_(model), layers_(layers) {}

    torch::Tensor forward(nn::Fields const& inputs) override {
        answer = run(model_, inputs, layers_, "the model");
        return answer.outputs;
    }

    /// The key of the model's random numbers, which only models read.
    std::uint64_t key() const { return (model_.*&KeptAnswer::random_key)()->value; }

    Answer answer;

  private:
    nn::Model& model_;
    std::vector<std::string> const& layers_;
};

/// A number for all values, or for each channel, where data::Normaliser has it.
torch::Tensor by_channel(std::vector<double> const& numbers, torch::Tensor const& inputs,
                         bool last) {
    auto const options = torch::TensorOptions(torch::kFloat32);
    std::vector<std::int64_t> extents(static_cast<std::size_t>(inputs.dim()), 1);
    if (numbers.size() > 1) {
        auto const shape = inputs.sizes().slice(1); // of a sample, or of a row of one
        auto const axis =
            data::axis_of_channels(numbers.size(), {shape.begin(), shape.end()}, last);
        extents.at(1 + axis) = static_cast<std::int64_t>(numbers.size());
    }
    return torch::tensor(numbers, options).view(extents).to(inputs.device());
}

/// For another model: one may change its inputs in place.
nn::Fields copy_of(nn::Fields const& inputs, Rescaling const& rescaling = {}) {
    std::vector<nn::Field> fields;
    for (std::size_t at = 0; at < inputs.size(); ++at) {
        auto& field = fields.emplace_back(inputs[at]);
        if (at == 0 && !rescaling.factor.empty()) {
            bool const last = rescaling.channels_last;
            field.values = field.values * by_channel(rescaling.factor, field.values, last) +
                           by_channel(rescaling.offset, field.values, last);
        } else {
            field.values = field.values.clone();
        }
        if (field.lengths.defined()) {
            field.lengths = field.lengths.clone();
        }
    }
    return nn::Fields(std::move(fields));
}

struct Teacher {
    explicit Teacher(std::shared_ptr<nn::Model> of) : model(std::move(of)), mode(*model) {}

    std::shared_ptr<nn::Model> model;
    nn::EvaluationMode mode;
};

/// Lends teachers to threads, one to each at a time. They compute the same.
class Lent {
  public:
    explicit Lent(std::vector<std::shared_ptr<nn::Model>> const& models) {
        for (auto const& model : models) {
            free_.push_back(std::make_unique<Teacher>(model));
        }
    }

    /// Random numbers follow from `key`.
    Answer run(nn::Fields const& inputs, std::vector<std::string> const& layers,
               std::uint64_t key) {
        auto teacher = take();
        Answer answer;
        try {
            torch::NoGradGuard const no_grad;
            teacher->mode.begin(key);
            answer = task::run(*teacher->model, inputs, layers, "the teacher");
        } catch (...) {
            give(std::move(teacher));
            throw;
        }
        give(std::move(teacher));
        return answer;
    }

  private:
    std::unique_ptr<Teacher> take() {
        std::unique_lock lock(mutex_);
        given_.wait(lock, [this] { return !free_.empty(); });
        auto teacher = std::move(free_.back());
        free_.pop_back();
        return teacher;
    }

    void give(std::unique_ptr<Teacher> teacher) {
        {
            std::lock_guard const lock(mutex_);
            free_.push_back(std::move(teacher));
        }
        given_.notify_one();
    }

    std::mutex mutex_;
    std::condition_variable given_;
    std::vector<std::unique_ptr<Teacher>> free_;
};

class Distilled : public Task {
  public:
    Distilled(std::unique_ptr<Task> task, Lesson lesson)
        : task_(std::move(task)), lesson_(std::move(lesson)), teachers_(lesson_.teachers) {
        for (auto const& pair : lesson_.hidden) {
            layers_.push_back(pair.student);
            teacher_layers_.push_back(pair.teacher);
        }
    }

    Loss training_loss(nn::Model& model, Tensors const& whole) const override {
        auto const [batch, recorded] = parts_of(whole);
        KeptAnswer kept(model, layers_);
        auto const same =
            lesson_.recorded ? nn::Fields() : copy_of(batch.inputs, lesson_.rescaling);
        auto loss = task_->training_loss(kept, batch);
        auto const key = random_key(kept.key(), Stream::dropout);
        auto const taught =
            lesson_.recorded ? Answer{recorded, {}} : teachers_.run(same, teacher_layers_, key);
        auto const student = kept.answer.outputs.to(torch::kFloat32);
        auto const teacher = taught.outputs.detach().to(torch::kFloat32);
        if (teacher.sizes() != student.sizes()) {
            throw Error(ExitCode::usage,
                        {"distill.teacher does not fit the model",
                         concat("the teacher's outputs are ", nn::sizes_text(teacher.sizes()),
                                ", but the model's outputs are ", nn::sizes_text(student.sizes())),
                         "Choose a teacher whose outputs have the shape of the model's outputs"});
        }
        // As much of the step's sum as the targets' part.
        auto const distance =
            distance_to(teacher, student, lesson_, task_->counted(batch)) * loss.weight;
        std::vector<torch::Tensor> parts{loss.sum.detach(), distance.detach()};
        auto const share = lesson_.options.weight;
        loss.sum = loss.sum * (1 - share) + distance * share;
        if (!lesson_.hidden.empty()) {
            auto const hidden = distance_of_hidden(taught, kept.answer) * loss.weight;
            parts.push_back(hidden.detach());
            loss.sum = loss.sum + hidden * lesson_.options.hidden_weight;
        }
        auto const own = torch::stack(parts).to(torch::kFloat64);
        loss.figures = loss.figures.defined() ? torch::cat({loss.figures, own}) : own;
        return loss;
    }

    std::vector<std::string> figures() const override {
        auto names = task_->figures();
        names.insert(names.end(), {"target_loss", "teacher_loss"});
        if (!lesson_.hidden.empty()) {
            names.emplace_back("hidden_loss");
        }
        return names;
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        return task_->evaluate(model, batch);
    }
    std::int64_t outputs() const override { return task_->outputs(); }
    std::size_t counts() const override { return task_->counts(); }
    std::size_t sums() const override { return task_->sums(); }
    std::size_t scores() const override { return task_->scores(); }
    Metrics metrics(Tally const& total) const override { return task_->metrics(total); }
    std::vector<std::int64_t> confusion(Tally const& total) const override {
        return task_->confusion(total);
    }
    std::size_t training_counts() const override { return task_->training_counts(); }
    Metrics training_metrics(std::vector<std::int64_t> const& counts) const override {
        return task_->training_metrics(counts);
    }
    torch::Tensor counted(Tensors const& batch) const override { return task_->counted(batch); }
    std::vector<double> class_weights() const override { return task_->class_weights(); }
    std::int64_t classes_of_places() const override { return task_->classes_of_places(); }
    std::optional<std::int64_t> ignored_class() const override { return task_->ignored_class(); }

  private:
    /// What the task learns, and the outputs of a teacher that came with it.
    std::pair<Tensors, torch::Tensor> parts_of(Tensors const& whole) const {
        if (!lesson_.recorded) {
            return {whole, {}};
        }
        std::vector<nn::Field> targets(whole.targets.begin(), whole.targets.end());
        auto outputs = targets.back().values;
        targets.pop_back();
        return {{whole.inputs, nn::Fields(std::move(targets))}, std::move(outputs)};
    }

    torch::Tensor distance_of_hidden(Answer const& teacher, Answer const& student) const {
        auto sum = torch::zeros({}, student.outputs.options().dtype(torch::kFloat32));
        for (std::size_t at = 0; at < lesson_.hidden.size(); ++at) {
            sum = sum + hidden_distance(teacher.hidden[at].detach(), student.hidden[at],
                                        lesson_.hidden[at]);
        }
        return sum;
    }

    std::unique_ptr<Task> task_;
    Lesson lesson_;
    std::vector<std::string> layers_;
    std::vector<std::string> teacher_layers_;
    mutable Lent teachers_;
};

} // namespace

void require_hidden(nn::Model& model, nn::Model& teacher, nn::Fields const& inputs,
                    std::vector<config::HiddenPair> const& pairs) {
    torch::NoGradGuard const no_grad;
    std::vector<std::string> layers;
    std::vector<std::string> teacher_layers;
    for (auto const& pair : pairs) {
        layers.push_back(pair.student);
        teacher_layers.push_back(pair.teacher);
    }
    auto const student = run(model, copy_of(inputs), layers, "the model").hidden;
    auto const taught = run(teacher, copy_of(inputs), teacher_layers, "the teacher").hidden;
    for (std::size_t at = 0; at < pairs.size(); ++at) {
        hidden_distance(taught[at], student[at], pairs[at]);
    }
}

std::unique_ptr<Task> distilled(std::unique_ptr<Task> task, Lesson lesson) {
    return std::make_unique<Distilled>(std::move(task), std::move(lesson));
}

} // namespace lockstep::task
