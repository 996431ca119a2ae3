#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "nn/exported.hpp"
#include "program/metadata.hpp"

#include <cmath>

#include "tasks.hpp"

namespace lockstep::task {

namespace {

program::LossMetadata loss_of(std::string const& file) {
    if (file.empty()) {
        throw Error(ExitCode::usage,
                    {"task.kind = export", "model.file is not set, so there is no loss",
                     "Set model.file to a file that lockstep_export.save(model, inputs, FILE, "
                     "loss=...) has written"});
    }
    auto loss = program::read_loss_metadata(program::Archive(file));
    if (!loss) {
        throw Error(ExitCode::usage,
                    {concat("task.kind = export with ", file), "the file was saved without a loss",
                     "Save the model with lockstep_export.save(model, inputs, FILE, loss=...), or "
                     "choose another task"});
    }
    return std::move(*loss);
}

/// What an exported program says that is to be learnt: it is given inputs and targets, and returns
/// sums over the batch.
class ExportedLoss : public Task {
  public:
    explicit ExportedLoss(std::string const& file) : loss_(loss_of(file)) {}

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto const sums = nn::results_of(model, batch.inputs, batch.targets);
        return {sums.at(loss_.loss), weight_of(sums)};
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const sums = nn::results_of(model, batch.inputs, batch.targets);
        Tally tally{sums.at(loss_.loss).item<double>(), weight_of(sums)};
        for (auto const& sum : sums) {
            tally.sums.push_back(sum.item<double>());
        }
        return tally;
    }

    Predicts predicts() const override { return Predicts::nothing; }
    std::int64_t outputs() const override { return 0; }
    std::size_t sums() const override { return loss_.sums.size(); }

    Metrics metrics(Tally const& total) const override {
        Metrics metrics;
        for (auto const& metric : loss_.metrics) {
            metrics[metric.name] = total.sums[metric.dividend] / total.sums[metric.divisor];
        }
        return metrics;
    }

  private:
    double weight_of(std::vector<torch::Tensor> const& sums) const {
        auto const weight = sums.at(loss_.weight).item<double>();
        if (!(weight >= 0) || std::isinf(weight)) {
            throw Error(
                ExitCode::usage,
                {concat("the exported loss returns the weight ", weight, " for a batch"),
                 "the sum of losses is divided by the sum of these weights, so each weight must be "
                 "finite and at least 0",
                 "Change the loss so that it returns the number of samples or symbols as the "
                 "weight"});
        }
        return weight;
    }

    program::LossMetadata loss_;
};

} // namespace

TaskKind export_kind() {
    return {"export",
            "the loss that the exported program in model.file computes",
            {},
            {{"loss", false}},
            [](config::OwnValues const& /*values*/, Samples const& samples) {
                return std::make_unique<ExportedLoss>(samples.model_file);
            },
            nullptr,
            [](std::string const& file) {
                std::vector<MetricKind> metrics;
                for (auto const& metric : loss_of(file).metrics) {
                    metrics.push_back({metric.name, metric.more_is_better});
                }
                return metrics;
            }};
}

} // namespace lockstep::task
