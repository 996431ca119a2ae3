#include "measure/train_side/bench_training.hpp"

#include "base/clock.hpp"
#include "base/random.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "train/device.hpp"

#include <torch/nn/functional/loss.h>
#include <torch/optim/adamw.h>

#include <cerrno>
#include <filesystem>
#include <unistd.h>

namespace lockstep::measure {

namespace {

void write_random_images(std::string const& path, std::int64_t samples, int stream) {
    auto const sample_shape = RandomBatches::sample_shape();
    h5::Shape shape{static_cast<std::uint64_t>(samples)};
    shape.insert(shape.end(), sample_shape.begin(), sample_shape.end());
    auto const key = random_key(0, Stream::augmentation, {static_cast<std::uint64_t>(stream)});
    std::vector<std::uint8_t> pixels(h5::elements(shape));
    for (std::size_t at = 0; at < pixels.size(); ++at) {
        pixels[at] = static_cast<std::uint8_t>(mixed(key ^ at));
    }
    std::vector<std::int64_t> labels(static_cast<std::size_t>(samples));
    for (std::size_t at = 0; at < labels.size(); ++at) {
        labels[at] = static_cast<std::int64_t>(mixed(~key ^ at) % RandomBatches::classes);
    }
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::u8, shape);
    file.create_dataset("targets", h5::Type::i64, {labels.size()});
    file.write("inputs", h5::Type::u8, pixels);
    file.write("targets", h5::Type::i64, labels);
    file.close();
}

std::shared_ptr<nn::Model> model_of(config::Deck const& deck) {
    return nn::make_model(deck.model, {RandomBatches::sample_shape(), RandomBatches::classes},
                          static_cast<std::uint64_t>(deck.run.seed));
}

class EngineTraining : public BenchTraining {
  public:
    EngineTraining(comm::Communicator const& comm, config::Deck const& deck, RandomBatches& batches)
        : deck_(deck), batches_(batches.source()), model_(model_of(deck_)),
          task_(task::make_task(deck_.task, batches.samples())),
          engine_({comm, deck_, *model_, *task_, torch::kCPU, [this] { return model_of(deck_); }}) {
    }

    StepTimes step() override {
        Stopwatch const watch;
        auto const outcome = engine_.step(
            {.batches = batches_, .step = step_++, .rate = deck_.optimizer.learning_rate});
        StepTimes const times{watch.seconds(),
                              outcome.local.data + outcome.local.forward,
                              outcome.local.backward,
                              outcome.exchange.exposed_s,
                              outcome.exchange.imbalance_s,
                              outcome.update_s};
        loss_ = outcome.loss_sum / outcome.weight;
        return times;
    }
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

TemporaryFile::TemporaryFile()
    : path_((std::filesystem::temp_directory_path() / "lockstep-bench-XXXXXX").string()) {
    int const descriptor = ::mkstemp(path_.data());
    if (descriptor < 0) {
        throw system_error("making " + path_, errno, "Name another directory in TMPDIR");
    }
    ::close(descriptor);
}

TemporaryFile::~TemporaryFile() {
    ::unlink(path_.c_str());
}

RandomBatches::RandomBatches(std::int64_t batches, std::int64_t batch, int stream) {
    write_random_images(file_.path(), batches * batch, stream);
    set_.emplace(data::DatasetOptions{.files = file_.path()});
    auto const request = [=, this](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
        if (k == batches) { // asked for by the one worker when it has made all before
            all_made_.set_value();
            return std::nullopt;
        }
        std::vector<std::int64_t> indices(static_cast<std::size_t>(batch));
        for (std::size_t i = 0; i < indices.size(); ++i) {
            indices[i] = k * batch + static_cast<std::int64_t>(i);
        }
        return indices;
    };
    auto all_made = all_made_.get_future();
    loader_ = std::make_unique<data::Loader>(
        *set_, request, data::LoaderOptions{.workers = 1, .prefetch = static_cast<int>(batches)});
    all_made.wait();
    source_ = std::make_unique<train::LoadedBatches>(*loader_, set_->inputs(), set_->targets(),
                                                     torch::kCPU);
}

std::unique_ptr<BenchTraining> engine_training(comm::Communicator const& comm,
                                               config::Deck const& deck, RandomBatches& batches) {
    return std::make_unique<EngineTraining>(comm, deck, batches);
}

std::unique_ptr<BenchTraining> bare_training(config::Deck const& deck, RandomBatches& batches) {
    return std::make_unique<BareTraining>(deck, batches);
}

} // namespace lockstep::measure
