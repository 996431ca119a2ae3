#include "measure/train_side/bench_training.hpp"

#include "base/clock.hpp"
#include "base/random.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "step/batch_source.hpp"
#include "step/engine.hpp"

#include <torch/nn/functional/loss.h>
#include <torch/optim/adamw.h>

#include <cerrno>
#include <filesystem>

namespace lockstep::measure {

namespace {

std::shared_ptr<nn::Model> model_of(config::Deck const& deck) {
    return nn::make_model(deck.model, {RandomBatches::sample_shape(), RandomBatches::classes},
                          static_cast<std::uint64_t>(deck.run.seed));
}

class EngineTraining : public BenchTraining {
  public:
    EngineTraining(comm::Communicator const& comm, config::Deck const& deck, RandomBatches& batches)
        : deck_(deck), batches_(batches.source()), model_(model_of(deck_)),
          task_(task::make_task(deck_.task, batches.samples())),
          engine_(train::EngineParts::open(
              {comm, deck_, *model_, *task_, torch::kCPU, [this] { return model_of(deck_); }})) {}

    StepTimes step() override {
        Stopwatch const watch;
        auto const outcome = engine_.step({.batches = batches_,
                                           .step = step_++,
                                           .rate = deck_.optimizer.learning_rate,
                                           .followed = true});
        StepTimes const times{watch.seconds(),
                              outcome.local.data + outcome.local.forward,
                              outcome.local.backward,
                              outcome.exchange.exposed_s,
                              outcome.exchange.imbalance_s,
                              outcome.update_s};
        loss_ = outcome.loss_sum / outcome.weight;
        return times;
    }
    void end() override { engine_.whole(); }
    double loss() const override { return loss_; }
    std::uint64_t parameter_bytes() const override {
        return static_cast<std::uint64_t>(engine_.layout().parameters) * sizeof(float);
    }

  private:
    config::Deck deck_;
    train::BatchSource& batches_;
    std::shared_ptr<nn::Model> model_;
    std::unique_ptr<task::Task> task_;
    train::Engine engine_;
    std::int64_t step_ = 0;
    double loss_ = 0;
};

class BareTraining : public BenchTraining {
  public:
    BareTraining(config::Deck const& deck, RandomBatches& batches)
        : batches_(batches.source()), model_(model_of(deck)),
          optimizer_(model_->parameters(), torch::optim::AdamWOptions(deck.optimizer.learning_rate)
                                               .weight_decay(deck.optimizer.weight_decay)) {}

    StepTimes step() override {
        StepTimes times;
        Stopwatch const whole;
        Stopwatch watch;
        auto const batch = batches_.next();
        optimizer_.zero_grad();
        auto const loss = torch::nn::functional::cross_entropy(model_->forward(batch.inputs),
                                                               batch.targets.only());
        times.forward = watch.restart();
        loss.backward();
        times.backward = watch.restart();
        optimizer_.step();
        times.update = watch.restart();
        times.whole = whole.seconds();
        loss_ = loss.item<double>();
        return times;
    }
    double loss() const override { return loss_; }
    std::uint64_t parameter_bytes() const override {
        std::uint64_t bytes = 0;
        for (auto const& parameter : model_->parameters()) {
            bytes += parameter.nbytes();
        }
        return bytes;
    }

  private:
    train::BatchSource& batches_;
    std::shared_ptr<nn::Model> model_;
    torch::optim::AdamW optimizer_;
    double loss_ = 0;
};

} // namespace

std::unique_ptr<BenchTraining> engine_training(comm::Communicator const& comm,
                                               config::Deck const& deck, RandomBatches& batches) {
    return std::make_unique<EngineTraining>(comm, deck, batches);
}

std::unique_ptr<BenchTraining> bare_training(config::Deck const& deck, RandomBatches& batches) {
    return std::make_unique<BareTraining>(deck, batches);
}

} // namespace lockstep::measure
