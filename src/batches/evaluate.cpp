#include "batches/evaluate.hpp"

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "batches/loaded_batches.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/progress.hpp"
#include "comm/replica_tree.hpp"
#include "data/plan.hpp"
#include "device/autocast.hpp"
#include "device/on_batch.hpp"
#include "lockstep/base/error.hpp"
#include "nn/evaluation_mode.hpp"
#include "step/batch_source.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

namespace lockstep::train {

EvaluateOptions evaluate_options(config::Deck const& deck, torch::Device device) {
    return {.loader = {static_cast<int>(deck.data.workers), static_cast<int>(deck.data.prefetch)},
            .device = device,
            .precision = deck.precision};
}

namespace {

constexpr std::int64_t batches_of_a_round = 8;

/// Rounds that the rank with the most batches takes: all ranks reduce as often.
std::int64_t rounds_of(data::EvaluationPlan const& plan, int ranks) {
    std::int64_t max = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        max = std::max(max, plan.batches_of(rank, ranks).count);
    }
    return (max + batches_of_a_round - 1) / batches_of_a_round;
}

/// Another model, what it has returned last.
class HeardModel : public nn::Model {
  public:
    explicit HeardModel(nn::Model& model) : model_(model) {}

    torch::Tensor forward(nn::Fields const& inputs) override {
        outputs = model_.forward(inputs);
        return outputs;
    }

    torch::Tensor outputs;

  private:
    nn::Model& model_;
};

/// The task's tally of a batch whose first sample is `first`; what the model returned is handed on.
task::Tally tally_of(task::Task const& task, nn::Model& model, task::Tensors const& batch,
                     std::int64_t first, TakeOutputs const& take) {
    if (!take) {
        return task.evaluate(model, batch);
    }
    HeardModel heard(model);
    auto tally = task.evaluate(heard, batch);
    take(first, heard.outputs, batch);
    return tally;
}

/// What the tallies of a model's batches add up to.
class Sums {
  public:
    Sums(task::Task const& task, data::EvaluationPlan const& plan)
        : plan_(plan), batches_(static_cast<std::size_t>(plan.batches())),
          columns_(2 + task.sums()), values_(columns_ * batches_, 0), counts_(task.counts(), 0),
          width_(task.scores()) {}

    void add(std::size_t batch, task::Tally const& tally) {
        column(0)[batch] = tally.loss_sum;
        column(1)[batch] = tally.weight;
        for (std::size_t i = 0; 2 + i < columns_; ++i) {
            column(2 + i)[batch] = tally.sums[i];
        }
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            counts_[i] += tally.counts[i];
        }
        scores_.insert(scores_.end(), tally.scores.begin(), tally.scores.end());
    }

    /// Each batch is non-zero on one rank only, so these sums are exact.
    ///
    /// Collective  over `comm`
    task::Tally total(comm::Communicator const& comm) {
        comm::all_reduce(comm, std::span(values_), comm::Reduce::sum);
        comm::all_reduce(comm, std::span(counts_), comm::Reduce::sum);
        auto const sum_of = [&](std::size_t at) { return comm::tree_sum(column(at)); };
        task::Tally total{sum_of(0), sum_of(1), counts_};
        for (std::size_t i = 2; i < columns_; ++i) {
            total.sums.push_back(sum_of(i));
        }
        if (width_ > 0) {
            gather_scores(comm, total);
        }
        return total;
    }

  private:
    std::span<double> column(std::size_t at) {
        return std::span(values_).subspan(at * batches_, batches_);
    }

    /// Adds the scores of all ranks; each rank has those of its batches, one after another.
    void gather_scores(comm::Communicator const& comm, task::Tally& total) const {
        std::vector<std::int64_t> bounds;
        auto const place = [&](std::int64_t batch) {
            return std::min(batch * plan_.batch, plan_.samples) * static_cast<std::int64_t>(width_);
        };
        for (int rank = 0; rank < comm.size(); ++rank) {
            bounds.push_back(place(plan_.batches_of(rank, comm.size()).first));
        }
        bounds.push_back(place(plan_.batches()));
        total.scores.resize(static_cast<std::size_t>(bounds.back()));
        std::ranges::copy(scores_,
                          total.scores.begin() + bounds[static_cast<std::size_t>(comm.rank())]);
        comm::all_gather_slices(comm, std::span(total.scores), bounds);
    }

    data::EvaluationPlan plan_;
    std::size_t batches_;
    std::size_t columns_;
    std::vector<double> values_; ///< [columns][batches]: losses, weights, sums
    std::vector<std::int64_t> counts_;
    std::size_t width_; ///< scores of a sample
    std::vector<float> scores_;
};

/// The metrics of a constant model over all classes or values, and its loss.
task::Metrics metrics_of(task::Task const& task, task::Tally const& total) {
    auto metrics = task.metrics(total);
    std::erase_if(metrics,
                  [](auto const& metric) { return metric.first.find('.') != std::string::npos; });
    metrics["loss"] = total.loss_sum / total.weight;
    return metrics;
}

} // namespace

void require_room_for_scores(task::Task const& task, std::int64_t samples) {
    constexpr double max = 1e8;
    if (static_cast<double>(task.scores()) * static_cast<double>(samples) > max) {
        throw Error(ExitCode::usage, {concat("task.metrics asks for the scores of ",
                                             count_text(samples), " samples together"),
                                      concat("each sample has ", task.scores(),
                                             " of them, and all ranks keep all of "
                                             "them in memory, at most ",
                                             count_text(static_cast<std::int64_t>(max))),
                                      "Remove auroc and average-precision, or name a smaller set"});
    }
}

std::optional<Evaluation> evaluate(comm::Communicator const& comm, nn::Model& model,
                                   task::Task const& task, data::Dataset const& dataset,
                                   EvaluateOptions const& options) {
    Stopwatch const watch;
    torch::NoGradGuard const no_grad;
    data::EvaluationPlan const plan{dataset.samples(), options.batch};
    auto const mine = plan.batches_of(comm.rank(), comm.size());
    Sums sums(task, plan);
    std::optional<Sums> of_constant;
    if (options.constant != nullptr) {
        of_constant.emplace(task, plan);
    }

    nn::EvaluationMode const evaluation(model);
    std::optional<data::Loader> loader;
    std::unique_ptr<BatchSource> source;
    comm::agree(comm, "evaluation", [&] {
        require_room_for_scores(task, dataset.samples());
        loader.emplace(
            dataset,
            [&](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
                if (k >= mine.count) {
                    return std::nullopt;
                }
                auto const part = plan.part(mine.first + k);
                std::vector<std::int64_t> indices(static_cast<std::size_t>(part.count));
                std::iota(indices.begin(), indices.end(), part.first);
                return indices;
            },
            options.loader);
        source = batches_on(options.device, *loader, dataset.inputs(), dataset.targets());
    });
    auto const evaluate_batch = [&](std::int64_t k) {
        comm::progressed(comm);
        Autocast const autocast(options.precision, options.device);
        auto const tensors = source->next();
        auto const batch = static_cast<std::size_t>(mine.first + k);
        evaluation.begin(random_key(0, Stream::dropout, {batch})); // the same on any rank
        sums.add(batch, on_batch(tensors, [&] {
                     return tally_of(task, model, tensors, plan.part(mine.first + k).first,
                                     options.outputs);
                 }));
        if (of_constant) {
            of_constant->add(batch, on_batch(tensors, [&] {
                                 return task.evaluate(*options.constant, tensors);
                             }));
        }
    };
    bool stopped = false;
    for (std::int64_t round = 0; round < rounds_of(plan, comm.size()) && !stopped; ++round) {
        comm::agree(comm, "evaluation", [&] {
            auto const end = std::min((round + 1) * batches_of_a_round, mine.count);
            auto const evaluate_round = [&] {
                for (std::int64_t k = round * batches_of_a_round; k < end; ++k) {
                    evaluate_batch(k);
                }
            };
            options.lend ? options.lend(evaluate_round) : evaluate_round();
        });
        stopped = options.stop &&
                  options.stop(std::min((round + 1) * batches_of_a_round, mine.count), mine.count);
    }
    if (stopped) {
        return std::nullopt;
    }

    auto const total = sums.total(comm);
    comm::agree(comm, "evaluation", [&] {
        if (total.weight == 0) {
            throw Error(ExitCode::data, {"there is nothing to evaluate",
                                         "the loss leaves out every target of the evaluated set, "
                                         "for example because data.mask leaves out all targets",
                                         "Name an evaluated set that has targets for the loss"});
        }
    });
    task::Metrics constant;
    if (of_constant) {
        constant = metrics_of(task, of_constant->total(comm));
    }
    return Evaluation{.loss = total.loss_sum / total.weight,
                      .samples = dataset.samples(),
                      .metrics = task.metrics(total),
                      .seconds = watch.seconds(),
                      .confusion = task.confusion(total),
                      .constant = std::move(constant)};
}

} // namespace lockstep::train
