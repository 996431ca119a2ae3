#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tasks.hpp"

namespace lockstep::task {

namespace {

/// Real values of each sample. Sums are the absolute and the squared errors of each value.
class Regression : public Task {
  public:
    Regression(config::OwnValues const& values, Samples const& samples)
        : loss_(values.choice("loss", {"mse", "mae", "huber"})), names_(samples.class_names) {
        if (samples.targets.size() != 1 || samples.targets.front().ragged) {
            throw Error(ExitCode::data, {"data.targets does not fit the task",
                                         "task.kind = regression needs one dataset of real "
                                         "values, with samples of one shape",
                                         "Name such a dataset in data.targets"});
        }
        values_ = static_cast<std::int64_t>(h5::elements(samples.targets.front().shape));
    }

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto const truth = truth_of(batch);
        return {sum_of(given_by(model, batch, truth), truth), static_cast<double>(truth.numel())};
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const truth = truth_of(batch);
        auto const given = given_by(model, batch, truth);
        auto const errors = (given - truth).to(torch::kFloat64);
        auto const sums =
            torch::cat({errors.abs().sum(0), errors.square().sum(0)}).to(torch::kCPU).contiguous();
        auto const* const first = sums.const_data_ptr<double>();
        return {sum_of(given.to(torch::kFloat64), truth.to(torch::kFloat64)).item<double>(),
                static_cast<double>(truth.numel()),
                {truth.size(0)},
                {first, first + sums.numel()}};
    }

    std::int64_t outputs() const override { return values_; }
    std::size_t counts() const override { return 1; } // samples
    std::size_t sums() const override { return 2 * static_cast<std::size_t>(values_); }

    /// Mean absolute and root mean square error over all real values, and the former of each.
    Metrics metrics(Tally const& total) const override {
        auto const values = static_cast<std::size_t>(values_);
        auto const samples = static_cast<double>(std::max<std::int64_t>(total.counts[0], 1));
        Metrics metrics;
        double absolute = 0;
        double squared = 0;
        for (std::size_t i = 0; i < values; ++i) {
            absolute += total.sums[i];
            squared += total.sums[values + i];
            if (values > 1 && values <= max_named) {
                metrics[concat("mae.", names_.size() == values ? names_[i] : std::to_string(i))] =
                    total.sums[i] / samples;
            }
        }
        auto const all = samples * static_cast<double>(values_);
        metrics["mae"] = absolute / all;
        metrics["rmse"] = std::sqrt(squared / all);
        return metrics;
    }

  private:
    static constexpr std::size_t max_named = 64; ///< real values; of more, only the mean is told

    /// Whose values lie in the same order as those of every shape that has the same.
    static std::vector<std::int64_t> without_ones(torch::IntArrayRef sizes) {
        auto extents = sizes.vec();
        std::erase(extents, 1);
        return extents;
    }

    torch::Tensor truth_of(Tensors const& batch) const {
        return batch.targets.only().to(torch::kFloat32).reshape({-1, values_});
    }

    torch::Tensor given_by(nn::Model& model, Tensors const& batch,
                           torch::Tensor const& truth) const {
        auto given = model.forward(batch.inputs).to(torch::kFloat32);
        auto const wanted = batch.targets.only().sizes();
        bool const in_a_row =
            std::min(given.dim(), std::ssize(wanted)) <= 2 && given.numel() == truth.numel();
        if (!in_a_row && without_ones(given.sizes()) != without_ones(wanted)) {
            throw Error(ExitCode::usage,
                        {"task.kind = regression",
                         concat("the model returns the shape ", nn::sizes_text(given.sizes()),
                                ", but the targets have the shape ", nn::sizes_text(wanted)),
                         concat("Choose a model that returns the targets' shape or [samples, ",
                                values_, "], or store the targets in the model's shape")});
        }
        return given.reshape(truth.sizes());
    }

    torch::Tensor sum_of(torch::Tensor const& given, torch::Tensor const& truth) const {
        if (loss_ == "mse") {
            return torch::mse_loss(given, truth, at::Reduction::Sum);
        }
        return loss_ == "mae" ? torch::l1_loss(given, truth, at::Reduction::Sum)
                              : torch::huber_loss(given, truth, at::Reduction::Sum);
    }

    std::string loss_;
    std::vector<std::string> names_;
    std::int64_t values_ = 0;
};

} // namespace

TaskKind regression_kind() {
    return {"regression",
            "one or more real values for each sample",
            {{"loss", "mse", "loss function: mse, mae or huber"}},
            {{"mae", false}, {"rmse", false}, {"loss", false}},
            [](config::OwnValues const& values, Samples const& samples) {
                return std::make_unique<Regression>(values, samples);
            },
            nullptr,
            nullptr,
            data::Labels::none};
}

} // namespace lockstep::task
