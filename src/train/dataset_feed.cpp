#include "dataset_feed.hpp"

#include <algorithm>

namespace lockstep::train {

namespace {

/// A loader, and its batches as tensors.
class LoaderBatches : public BatchSource {
  public:
    LoaderBatches(Workload const& work, data::Loader::Request request,
                  data::LoaderOptions const& options, torch::Device device)
        : loader_(*work.train, std::move(request), options),
          batches_(loader_, work.samples.inputs, work.samples.targets, device) {}

    task::Tensors next() override { return batches_.next(); }

  private:
    data::Loader loader_;
    LoadedBatches batches_;
};

} // namespace

/// The epochs and steps that this rank's batches belong to, from some step on.
struct DatasetFeed::Places {
    std::int64_t full;     ///< batches of a step, but for an epoch's last
    std::int64_t of_epoch; ///< batches of an epoch
    std::int64_t first;    ///< batch of that step
    std::int64_t last;     ///< step of an epoch

    std::int64_t epoch(std::int64_t k) const { return (first + k) / of_epoch; }
    std::int64_t step(std::int64_t k) const { // of its epoch
        return std::min((first + k) % of_epoch / full, last);
    }
    std::int64_t in_step(std::int64_t k) const { return (first + k) % of_epoch - step(k) * full; }
};

DatasetFeed::DatasetFeed(Parts const& parts)
    : parts_(parts), plan_(train_plan(parts.deck, *parts.work.train)),
      augmentation_(augmentation_of(parts.deck, parts.work.samples)) {}

DatasetFeed::Places DatasetFeed::places_from(std::int64_t first_step) const {
    auto const per_epoch = plan_.steps_per_epoch();
    auto const full = parts_.deck.optimizer.accumulate * parts_.own.count;
    auto const last = per_epoch - 1;
    auto const of_epoch = last * full + plan_.micro_batches(last) * parts_.own.count;
    return {full, of_epoch, first_step / per_epoch * of_epoch + first_step % per_epoch * full,
            last};
}

std::unique_ptr<BatchSource> DatasetFeed::batches(std::int64_t first_step,
                                                  std::int64_t total_steps) {
    auto const all = places_from(first_step);
    auto request = [first = parts_.own.first, &plan = plan_, all,
                    total_steps](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
        auto const epoch = all.epoch(k);
        auto const step = all.step(k);
        if (epoch * plan.steps_per_epoch() + step >= total_steps) {
            return std::nullopt;
        }
        auto const micros = plan.micro_batches(step);
        auto const replica = first + static_cast<int>(all.in_step(k) / micros);
        return plan.indices(epoch,
                            plan.part(step, static_cast<int>(all.in_step(k) % micros), replica));
    };
    auto const& data = parts_.deck.data;
    return std::make_unique<LoaderBatches>(
        parts_.work, std::move(request),
        data::LoaderOptions{static_cast<int>(data.workers), static_cast<int>(data.prefetch),
                            [this, all](std::int64_t k, data::Batch& batch) {
                                augmentation_.apply(batch, all.epoch(k));
                            }},
        parts_.device);
}

std::optional<Evaluation> DatasetFeed::measure(Set set, std::function<bool()> const& stop) {
    auto options = evaluate_options(parts_.deck, parts_.device);
    options.stop = stop;
    return evaluate(parts_.world, *parts_.work.model, *parts_.work.task, *dataset(set), options);
}

} // namespace lockstep::train
