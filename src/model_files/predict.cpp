#include "model_files/predict.hpp"

#include "base/random.hpp"
#include "base/text.hpp"
#include "batches/audited.hpp"
#include "batches/evaluate.hpp"
#include "batches/loaded_batches.hpp"
#include "batches/model_facts.hpp"
#include "checkpoint/weights.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "comm/progress.hpp"
#include "data/plan.hpp"
#include "data/sample_sources.hpp"
#include "device/autocast.hpp"
#include "device/configure_torch.hpp"
#include "device/device.hpp"
#include "device/on_batch.hpp"
#include "device/place.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "model_files/finite_weights.hpp"
#include "model_files/plain_deck.hpp"
#include "model_files/prediction_file.hpp"
#include "model_files/quantised_file.hpp"
#include "model_files/saved_model.hpp"
#include "model_files/stored_deck.hpp"
#include "nn/evaluation_mode.hpp"
#include "step/batch_source.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

namespace lockstep::train {

namespace {

constexpr char const* opening = "opening the samples and the model"; ///< a phase

/// A model, and the samples that it is asked about.
struct Asked {
    torch::Device device = torch::kCPU;
    Workload work;
    std::unique_ptr<data::Dataset> samples;
    std::vector<std::string> remarks;
};

void require_predictions(config::Deck const& deck, task::Task const& task) {
    if (task.predicts() == task::Predicts::nothing) {
        throw Error(ExitCode::usage,
                    {concat("task.kind = ", deck.task.kind),
                     deck.task.kind == "export"
                         ? "a program with its own loss computes nothing without targets"
                         : "this task has no predictions for samples of a file",
                     deck.task.kind == "language" ? "Continue texts with lockstep generate"
                                                  : "Name a model of another task"});
    }
}

/// The datasets that data.inputs names are those of the samples to predict.
config::Deck of_training(config::Deck deck, checkpoint::VerifiedFile const& file) {
    auto const record = checkpoint::open_weights(file)->record();
    if (!record.deck.empty()) {
        deck.data.inputs = stored_deck(record, file.path()).data.inputs;
    }
    return deck;
}

void open_model(Asked& asked, config::Deck const& deck, checkpoint::VerifiedFile const& file) {
    auto& work = asked.work;
    work = open_model_of(of_training(deck, file), file);
    require_predictions(deck, *work.task);
    if (is_quantised(file)) {
        if (!asked.device.is_cpu()) {
            throw Error(ExitCode::usage,
                        {concat("a quantised model cannot be used on ", device_text(asked.device)),
                         "int8 layers run on CPUs only", "Set run.device = cpu"});
        }
        auto const interface = model_interface(deck, work.samples, *work.task);
        work.model = open_quantised(work.model, interface, file);
    } else {
        place(*work.model, asked.device);
        load_weights(*work.model, file);
        require_finite_weights(*work.model, file.path());
    }
    asked.remarks = work.remarks;
}

/// Collective  over `world`
std::unique_ptr<data::Dataset> open_samples(comm::Communicator const& world,
                                            config::Data const& data, std::string const& files) {
    auto options = dataset_options(data, files);
    options.inputs_alone = true;
    options.mask.clear();
    return std::make_unique<data::Dataset>(data::Dataset::open_together(options, world));
}

/// Names of the classes, or of values.
std::vector<std::string> names_of(Workload const& work) {
    auto names = work.samples.class_names;
    if (names.empty() && work.task->predicts() == task::Predicts::values &&
        work.samples.targets.size() == 1 && work.task->outputs() == 1) {
        names = {work.samples.targets.front().name};
    }
    return names;
}

/// What a sample was made from: the file that is one, or what an import has noted. Null where no
/// file says so.
std::function<std::string(std::int64_t)> sources_of(Asked const& asked, config::Data const& data,
                                                    Unlabelled const& samples) {
    if (data.sample_per_file) {
        return [&set = *asked.samples](std::int64_t sample) {
            return set.place_of(sample).first.string();
        };
    }
    auto const known = std::make_shared<data::SampleSources>(*asked.samples, data.sequence);
    if (!known->tell(data::expand_files(samples.files))) {
        return {};
    }
    return [known](std::int64_t sample) { return known->of(sample); };
}

/// The batches of a rank: every `ranks`-th one, so that what all ranks do at a time is in a row.
class RankBatches {
  public:
    RankBatches(comm::Communicator const& world, Asked const& asked, config::Deck const& deck,
                std::int64_t batch)
        : plan_{asked.samples->samples(), batch}, rank_(world.rank()), ranks_(world.size()),
          loader_(
              *asked.samples,
              [this](std::int64_t round) -> std::optional<std::vector<std::int64_t>> {
                  auto const part = part_of(round);
                  if (part.count == 0) {
                      return std::nullopt;
                  }
                  std::vector<std::int64_t> indices(static_cast<std::size_t>(part.count));
                  std::iota(indices.begin(), indices.end(), part.first);
                  return indices;
              },
              evaluate_options(deck, asked.device).loader),
          source_(batches_on(asked.device, loader_, asked.samples->inputs(), {})) {}

    std::int64_t rounds() const { return (plan_.batches() + ranks_ - 1) / ranks_; }
    std::int64_t number(std::int64_t round) const { return round * ranks_ + rank_; }
    data::Span part_of(std::int64_t round) const {
        return number(round) < plan_.batches() ? plan_.part(number(round)) : data::Span{};
    }
    task::Tensors next() { return source_->next(); }

  private:
    data::EvaluationPlan plan_;
    std::int64_t rank_;
    std::int64_t ranks_;
    data::Loader loader_;
    std::unique_ptr<BatchSource> source_;
};

/// Numbers of this rank that are not finite.
std::int64_t not_finite(task::Prediction const& batch) {
    return batch.numbers.defined() && batch.numbers.is_floating_point()
               ? batch.numbers.isfinite().logical_not().sum().item<std::int64_t>()
               : 0;
}

/// Collective  over `world`
/// Returns     how many numbers are not finite
std::int64_t write(comm::Communicator const& world, config::Deck const& deck, Asked const& asked,
                   PredictionFile& file, std::int64_t batch) {
    torch::NoGradGuard const no_grad;
    auto& model = *asked.work.model;
    nn::EvaluationMode const evaluation(model);
    std::optional<RankBatches> batches;
    comm::agree(world, "predicting", [&] { batches.emplace(world, asked, deck, batch); });
    std::int64_t wrong = 0;
    std::vector<std::int64_t> shape;
    for (std::int64_t round = 0; round < batches->rounds(); ++round) {
        std::string rows;
        comm::agree(world, "predicting", [&] {
            auto const part = batches->part_of(round);
            if (part.count == 0) {
                return;
            }
            comm::progressed(world);
            Autocast const autocast(deck.precision, asked.device);
            auto const tensors = batches->next();
            // The same on any rank.
            evaluation.begin(random_key(0, Stream::dropout,
                                        {static_cast<std::uint64_t>(batches->number(round))}));
            auto const predicted =
                on_batch(tensors, [&] { return asked.work.task->predict(model, tensors.inputs); });
            wrong += not_finite(predicted);
            if (predicted.numbers.defined()) {
                shape = predicted.numbers.sizes().slice(1).vec();
            }
            rows = file.rows(part.first, predicted);
        });
        auto const of_ranks = comm::gather_text(world, rows);
        comm::agree(world, "writing the predictions", [&] {
            for (auto const& each : of_ranks) {
                if (!each.empty()) {
                    file.append(each, shape);
                }
            }
        });
    }
    return comm::all_reduce(world, wrong, comm::Reduce::sum);
}

} // namespace

PredictReport predict(comm::Communicator const& world, config::Deck const& given,
                      checkpoint::VerifiedFile const& file, Unlabelled const& samples,
                      PredictOptions const& options) {
    auto const deck = plain_deck(given);
    auto const topology = comm::Topology::discover(world);
    Asked asked;
    comm::agree(world, opening, [&] {
        asked.device = choose_device(deck.run, topology);
        configure_torch(deck.run);
        open_model(asked, deck, file);
    });
    asked.samples = open_samples(world, deck.data, samples.files);
    std::unique_ptr<PredictionFile> output;
    comm::agree(world, opening, [&] {
        auto const remark =
            read_as(*asked.samples, samples.named, asked.work.facts, data_of(file.path()));
        if (!remark.empty()) {
            asked.remarks.push_back(remark);
        }
        output = prediction_file(options.output,
                                 {asked.work.task->predicts(), names_of(asked.work),
                                  sources_of(asked, deck.data, samples), asked.samples->samples()});
    });
    return comm::in_phase(world, comm::Phase::test, [&] {
        auto const wrong = audited(world, topology, *asked.samples, [&] {
            return write(world, deck, asked, *output, options.batch);
        });
        comm::agree(world, "writing the predictions", [&] {
            if (world.is_root()) {
                output->close();
            }
        });
        if (wrong > 0) {
            asked.remarks.push_back(
                concat("warning: ", count_text(wrong), wrong == 1 ? " number is" : " numbers are",
                       " not finite: the model cannot be right for these samples"));
        }
        return PredictReport{asked.samples->samples(), asked.remarks};
    });
}

} // namespace lockstep::train
