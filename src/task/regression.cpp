#include "base/text.hpp"
#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "target_units.hpp"
#include "tasks.hpp"

namespace lockstep::task {

namespace {

/// Real values of each sample. The loss is that of normalised values where they are normalised;
/// metrics and predictions are in the targets' own units. Sums are the absolute and the squared
/// errors of each value.
class Regression : public Task {
  public:
    Regression(config::OwnValues const& values, Samples const& samples)
        : loss_(values.choice("loss", {"mse", "mae", "huber"})), names_(samples.class_names),
          tells_r2_(samples.ask_for("r2")), tells_rmse_(samples.ask_for("rmse")),
          units_(samples.target_mean, samples.target_std) {
        if (samples.targets.size() != 1 || samples.targets.front().ragged) {
            throw Error(ExitCode::data, {"data.targets does not fit the task",
                                         "task.kind = regression needs one dataset of real "
                                         "values, with samples of one shape",
                                         "Name such a dataset in data.targets"});
        }
        values_ = static_cast<std::int64_t>(h5::elements(samples.targets.front().shape));
    }

    Loss training_loss(nn::Model& model, Tensors const& batch) const override {
        auto const truth = learnt_from(batch).to(torch::kFloat32);
        return {sum_of(given_by(model, batch, truth), truth), static_cast<double>(truth.numel())};
    }

    Tally evaluate(nn::Model& model, Tensors const& batch) const override {
        auto const learnt = learnt_from(batch);
        auto const given = given_by(model, batch, learnt);
        auto const truth = truth_of(batch);
        auto const errors = units_.are_normalised() ? units_.own(given.to(torch::kFloat64)) - truth
                                                    : (given - truth).to(torch::kFloat64);
        std::vector<torch::Tensor> parts{errors.abs().sum(0), errors.square().sum(0)};
        if (tells_r2_) {
            auto const exact = truth.to(torch::kFloat64);
            parts.insert(parts.end(), {exact.sum(0), exact.square().sum(0)});
        }
        auto const sums = torch::cat(parts).to(torch::kCPU).contiguous();
        auto const* const first = sums.const_data_ptr<double>();
        return {sum_of(given.to(torch::kFloat64), learnt.to(torch::kFloat64)).item<double>(),
                static_cast<double>(truth.numel()),
                {truth.size(0)},
                {first, first + sums.numel()}};
    }

    Prediction predict(nn::Model& model, nn::Fields const& inputs) const override {
        auto found = Task::predict(model, inputs);
        if (units_.are_normalised()) {
            found.numbers =
                units_.own(found.numbers.to(torch::kFloat64)).to(torch::kFloat32).contiguous();
        }
        return found;
    }

    std::int64_t outputs() const override { return values_; }
    std::size_t counts() const override { return 1; } // samples
    std::size_t sums() const override {
        return (tells_r2_ ? 4 : 2) * static_cast<std::size_t>(values_);
    }

    /// Mean absolute and root mean square error over all real values, and the former of each; what
    /// the deck asks for of each, too.
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
                auto const name = name_of(i);
                metrics[concat("mae.", name)] = total.sums[i] / samples;
                if (tells_rmse_) {
                    metrics[concat("rmse.", name)] = std::sqrt(total.sums[values + i] / samples);
                }
            }
        }
        if (tells_r2_) {
            add_r2(metrics, total, samples);
        }
        auto const all = samples * static_cast<double>(values_);
        metrics["mae"] = absolute / all;
        metrics["rmse"] = std::sqrt(squared / all);
        return metrics;
    }

  private:
    std::string name_of(std::size_t value) const {
        return std::cmp_equal(names_.size(), values_) ? names_[value] : std::to_string(value);
    }

    /// The share of the variance that is explained, as a mean over the values; of one that does not
    /// vary, 1 where it is met and else 0.
    void add_r2(Metrics& metrics, Tally const& total, double samples) const {
        auto const values = static_cast<std::size_t>(values_);
        double sum = 0;
        for (std::size_t i = 0; i < values; ++i) {
            auto const left = total.sums[values + i];
            auto const mean = total.sums[2 * values + i] / samples;
            auto const all = total.sums[3 * values + i] - samples * mean * mean;
            auto const r2 = all > 0 ? 1 - left / all : left > 0 ? 0.0 : 1.0;
            sum += r2;
            if (values > 1 && values <= max_named) {
                metrics[concat("r2.", name_of(i))] = r2;
            }
        }
        metrics["r2"] = sum / static_cast<double>(values_);
    }

    static constexpr std::size_t max_named = 64; ///< real values; of more, only the mean is told

    /// Whose values lie in the same order as those of every shape that has the same.
    static std::vector<std::int64_t> without_ones(torch::IntArrayRef sizes) {
        auto extents = sizes.vec();
        std::erase(extents, 1);
        return extents;
    }

    /// float64 where values are normalised: large ones differ by little.
    torch::Tensor truth_of(Tensors const& batch) const {
        auto const type = units_.are_normalised() ? torch::kFloat64 : torch::kFloat32;
        return batch.targets.only().to(type).reshape({-1, values_});
    }

    /// What the model should return.
    torch::Tensor learnt_from(Tensors const& batch) const {
        auto const truth = truth_of(batch);
        return units_.are_normalised() ? units_.normalised(truth) : truth;
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
    bool tells_r2_;
    bool tells_rmse_; ///< of each value
    TargetUnits units_;
    std::int64_t values_ = 0;
};

} // namespace

TaskKind regression_kind() {
    return {"regression",
            "one or more real values for each sample",
            {{"loss", "mse", "loss function: mse, mae or huber"}},
            {{"mae", false}, {"rmse", false}, {"loss", false}, {"r2", true, true}},
            [](config::OwnValues const& values, Samples const& samples) {
                return std::make_unique<Regression>(values, samples);
            },
            nullptr,
            nullptr,
            data::Labels::none};
}

} // namespace lockstep::task
