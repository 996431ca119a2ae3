// A task of a user's own: labels by their margin, the multi-class hinge loss.
#include <lockstep/task/plugin.hpp>

namespace {

using namespace lockstep;

class Margin : public task::Task {
  public:
    Margin(double width, std::int64_t classes) : width_(width), classes_(classes) {}

    task::Loss training_loss(nn::Model& model, task::Tensors const& batch) const override {
        return {loss(model.forward(batch.inputs), batch), static_cast<double>(batch.samples())};
    }

    task::Tally evaluate(nn::Model& model, task::Tensors const& batch) const override {
        auto const scores = model.forward(batch.inputs);
        auto const hits = scores.argmax(1).eq(batch.targets.only()).sum().item<std::int64_t>();
        return {loss(scores, batch).item<double>(), static_cast<double>(batch.samples()), {hits}};
    }

    std::int64_t outputs() const override { return classes_; }
    std::size_t counts() const override { return 1; }
    task::Metrics metrics(task::Tally const& total) const override {
        return {{"hits", static_cast<double>(total.counts[0]) / total.weight}};
    }

  private:
    torch::Tensor loss(torch::Tensor const& scores, task::Tensors const& batch) const {
        return torch::multi_margin_loss(scores.to(torch::kFloat32), batch.targets.only(), 1, width_,
                                        {}, at::Reduction::Sum);
    }

    double width_;
    std::int64_t classes_;
};

} // namespace

LOCKSTEP_TASKS(task::TaskKind{.name = "margin",
                              .meaning = "labels by their margin",
                              .keys = {{"width", "1", "of the margin"}},
                              .metrics = {{"hits"}, {"loss", false}},
                              .make = [](auto const& values, auto const& samples) {
                                  auto const classes =
                                      static_cast<std::int64_t>(samples.class_names.size());
                                  return std::make_unique<Margin>(values.number("width", 0, 1e6),
                                                                  classes);
                              }})
