#include "dataset_module.hpp"

#include "base/text.hpp"
#include "batches/loaded_batches.hpp"
#include "batches/privacy_rules.hpp"
#include "batches/teacher_outputs.hpp"
#include "batches/train_plan.hpp"
#include "lockstep/base/error.hpp"
#include "step/batch_source.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::train {

namespace {

/// A loader, and its batches as tensors.
class LoaderBatches : public BatchSource {
  public:
    LoaderBatches(Workload const& work, data::Loader::Request request,
                  data::LoaderOptions const& options, torch::Device device)
        : loader_(*work.train, std::move(request), options),
          batches_(batches_on(device, loader_, work.samples.inputs, batch_targets(work))) {}

    task::Tensors next() override { return batches_->next(); }

  private:
    data::Loader loader_;
    std::unique_ptr<BatchSource> batches_;
};

} // namespace

DatasetModule::DatasetModule(DataModuleParts const& parts)
    : parts_(parts), plan_(train_plan(parts.deck, *parts.work.train, parts.privacy)),
      max_steps_(private_steps(parts.deck, parts.work.train->samples())),
      augmentation_(augmentation_of(parts.deck, parts.work)) {}

std::unique_ptr<BatchSource> DatasetModule::batches(std::int64_t first_step,
                                                    std::int64_t total_steps) {
    auto const& data = parts_.deck.data;
    return load({plan_, parts_.own, parts_.deck.optimizer.accumulate, {first_step, total_steps}},
                static_cast<int>(data.workers), static_cast<int>(data.prefetch));
}

std::unique_ptr<BatchSource> DatasetModule::batches_of(std::int64_t step, int replica) {
    return load({plan_, {.first = replica}, parts_.deck.optimizer.accumulate, {step, step + 1}}, 1,
                1);
}

std::unique_ptr<BatchSource> DatasetModule::load(StepBatches const& batches, int workers,
                                                 int prefetch) {
    return std::make_unique<LoaderBatches>(
        parts_.work, batches.request(),
        data::LoaderOptions{workers, prefetch,
                            [this, batches](std::int64_t k, data::Batch& batch) {
                                augmentation_.apply(batch, batches.epoch(k));
                                add_outputs(batch);
                            }},
        parts_.device);
}

/// As `batch_targets` has it.
void DatasetModule::add_outputs(data::Batch& batch) const {
    auto const& work = parts_.work;
    if (!work.outputs) {
        return;
    }
    std::vector<std::int64_t> samples(batch.indices.size());
    std::ranges::transform(batch.indices, samples.begin(), [&](std::int64_t sample) {
        return work.train->number_in_files(sample);
    });
    work.outputs->read(samples, batch.fields.emplace_back().reals);
}

namespace {

/// Whether a sample's first input is finite as it is stored, and only its mean and its std make it
/// too large.
bool is_scaled_away(data::Dataset const& set, std::int64_t sample) {
    if (set.mean().empty() || set.input_type() == h5::Type::f16) {
        return false;
    }
    data::Batch read;
    data::Scratch scratch;
    read.indices = {sample};
    set.read(read, scratch);
    auto const stored = set.read_stored(0, read.indices);
    return !std::ranges::all_of(read.fields.front().reals, [](float value) {
        return std::isfinite(value);
    }) && std::ranges::all_of(stored, [](double value) {
        return std::abs(value) <= std::numeric_limits<float>::max();
    });
}

} // namespace

std::vector<std::vector<std::int64_t>> DatasetModule::samples_of(std::int64_t step) const {
    StepBatches const batches(plan_, parts_.own, parts_.deck.optimizer.accumulate,
                              {step, step + 1});
    auto const request = batches.request();
    std::vector<std::vector<std::int64_t>> samples;
    while (auto const batch = request(std::ssize(samples))) {
        samples.push_back(*batch);
    }
    return samples;
}

Magnitudes DatasetModule::require_finite(std::int64_t step) const {
    Magnitudes largest;
    data::Scratch scratch;
    for (auto const& batch : samples_of(step)) {
        for (auto const index : batch) {
            data::Batch sample;
            sample.indices = {index};
            parts_.work.train->read(sample, scratch);
            bool finite = true;
            for (std::size_t at = 0; at < sample.fields.size(); ++at) {
                auto& most = at < sample.first_target ? largest.inputs : largest.targets;
                for (auto const value : sample.fields[at].reals) {
                    finite = finite && std::isfinite(value);
                    most = std::max(most, std::abs(static_cast<double>(value)));
                }
            }
            if (!finite && is_scaled_away(*parts_.work.train, index)) {
                throw Error(
                    ExitCode::data,
                    {concat("sample ", parts_.work.train->number_in_files(index),
                            " of data.train is not finite once it is normalized"),
                     "its values, less the mean and divided by the std, are too large for float32",
                     "Correct the attributes mean and std of the training files, or remove both"});
            }
            if (!finite) {
                bool const is_wide = std::ranges::any_of(
                    parts_.work.samples.inputs,
                    [](data::FieldInfo const& field) { return field.type == h5::Type::f64; });
                throw Error(ExitCode::data,
                            {concat("sample ", parts_.work.train->number_in_files(index),
                                    " of data.train is not finite"),
                             concat("this sample holds NaN or infinity",
                                    is_wide ? ", or a value of type f64 that is too large for "
                                              "float32 (above 3.4e38)"
                                            : "",
                                    ", and the loss of its batch is not finite either"),
                             "Correct or remove this sample (the first sample has number 0). The "
                             "last checkpoint is from before this step"});
            }
        }
    }
    return largest;
}

std::optional<Evaluation> DatasetModule::measure(Set set, StopEvaluation const& stop,
                                                 LendParameters const& lend) {
    auto options = evaluate_options(parts_.deck, parts_.device);
    options.stop = stop;
    options.lend = lend;
    auto const& answer = parts_.work.constant_answer;
    auto const known = constants_.find(set);
    options.constant = answer && known == constants_.end() ? answer->model.get() : nullptr;
    auto measured =
        evaluate(parts_.world, *parts_.work.model, *parts_.work.task, *dataset(set), options);
    if (measured && known != constants_.end()) {
        measured->constant = known->second;
    } else if (measured && answer) {
        if (!answer->has_loss) {
            measured->constant.erase("loss");
        }
        constants_.emplace(set, measured->constant);
    }
    return measured;
}

} // namespace lockstep::train
