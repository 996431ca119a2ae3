// Ranks as threads that train, and replicas as threads of a rank, with pauses in seeded places:
// what the thread sanitizer looks at. A step here is the engine's without its sums; the last case
// is the engine itself, with checkpoints in the background.

#include "arena/arena.hpp"
#include "arena/buffers.hpp"
#include "checkpoint/background_writer.hpp"
#include "checkpoint/reader.hpp"
#include "comm/make_tree_exchange.hpp"
#include "device/configure_torch.hpp"
#include "lockstep/nn/registry.hpp"
#include "step/batch_source.hpp"
#include "step/engine.hpp"

#include <torch/utils.h>

#include <cmath>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "schedule.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr std::int64_t side = 8;
constexpr std::int64_t batch = 3;
constexpr int micro_batches = 2;
constexpr int steps_per_run = 3;
constexpr double timeout_s = 60;

struct Setting {
    config::Model model;
    int replicas = 5;
    int ranks = 3;
    bool concurrent = false; ///< the replicas of a rank; else sequentially
    bool sync_batch_norm = false;
    bool recompute = false;
    std::string compute = "fp32";
};

/// Batches that depend on step, replica and micro-batch alone.
class MadeBatches : public train::BatchSource {
  public:
    MadeBatches(comm::TreeNode node, test::Schedule& schedule) : node_(node), schedule_(schedule) {}

    task::Tensors next() override {
        schedule_.maybe_pause();
        auto const in_step = node_.count * micro_batches;
        auto const key = 1000 * (taken_ / in_step) + micro_batches * node_.first + taken_ % in_step;
        ++taken_;
        auto const place = torch::arange(batch * side * side, torch::kFloat32);
        return {torch::sin(place * static_cast<float>(key + 1)).reshape({batch, side, side}),
                (torch::arange(batch, torch::kInt64) + key) % 3};
    }

  private:
    comm::TreeNode node_;
    test::Schedule& schedule_;
    int taken_ = 0;
};

/// A task whose replicas come and go at other times with every seed.
class PausingTask : public task::Task {
  public:
    explicit PausingTask(test::Schedule& schedule)
        : inner_(task::make_task(
              {"classification", {}, {{"class-weights", "0.5, 1, 2"}}},
              {.inputs = {{.name = "inputs", .type = h5::Type::f32, .shape = {side, side}}},
               .targets = {{.name = "targets", .type = h5::Type::i64, .shape = {}, .whole = true}},
               .class_names = {"a", "b", "c"},
               .class_counts = {1, 1, 1}})),
          schedule_(schedule) {}

    task::Loss training_loss(nn::Model& model, task::Tensors const& tensors) const override {
        schedule_.maybe_pause();
        auto loss = inner_->training_loss(model, tensors);
        schedule_.maybe_pause();
        return loss;
    }
    task::Tally evaluate(nn::Model& model, task::Tensors const& tensors) const override {
        return inner_->evaluate(model, tensors);
    }
    std::int64_t outputs() const override { return inner_->outputs(); }
    task::Metrics metrics(task::Tally const& total) const override {
        return inner_->metrics(total);
    }

  private:
    std::unique_ptr<task::Task> inner_;
    test::Schedule& schedule_;
};

/// An exchange to which this rank comes at other times with every seed.
class PausingExchange : public comm::Exchange {
  public:
    PausingExchange(std::unique_ptr<comm::Exchange> inner, test::Schedule& schedule)
        : Exchange(inner->partition()), inner_(std::move(inner)), schedule_(schedule) {}

    std::string name() const override { return inner_->name(); }
    int rank() const noexcept override { return inner_->rank(); }
    bool sums_everywhere() const noexcept override { return inner_->sums_everywhere(); }
    float* gradients() noexcept override { return inner_->gradients(); }
    float* parameters() noexcept override { return inner_->parameters(); }

  private:
    void begin_sum(double unit) override { sum_.emplace(inner_->begin(unit)); }
    void bucket_ready(int index) override {
        schedule_.maybe_pause();
        sum_->ready(index);
    }
    void finish_sum(std::span<double> step_sums, std::span<std::byte> payload) override {
        schedule_.maybe_pause();
        squares_ = std::move(*sum_).finish(step_sums, payload);
        schedule_.maybe_pause();
    }
    std::span<double const> squares() const override { return squares_; }
    void send_parameters() override {
        schedule_.maybe_pause();
        inner_->publish();
    }

    std::unique_ptr<comm::Exchange> inner_;
    std::optional<comm::GradientSum> sum_;
    std::span<double const> squares_;
    test::Schedule& schedule_;
};

nn::Interface interface_of(Setting const& setting) {
    return {{side, side}, 3, setting.recompute, setting.sync_batch_norm};
}

config::Optimizer optimizer_options() {
    config::Optimizer options;
    options.ema = 0.9;
    return options;
}

/// What one rank has to itself. Made before the threads start, since models draw their first
/// weights from torch's one generator.
class Rank {
  public:
    Rank(Setting const& setting, std::unique_ptr<comm::Exchange> exchange, comm::TreeNode node,
         train::ThreadReplicaSums* sums, std::uint64_t seed)
        : schedule_(seed), task_(schedule_), batches_(node, schedule_), models_([&] {
              std::vector<std::shared_ptr<nn::Model>> models;
              do {
                  models.push_back(nn::make_model(setting.model, interface_of(setting), 7));
              } while (setting.concurrent && static_cast<int>(models.size()) < node.count);
              return models;
          }()),
          layout_(train::Layout::of(*models_.front())), buffers_(*models_.front()),
          exchange_(std::move(exchange), schedule_),
          arena_(layout_, train::borrowed(exchange_.parameters(), layout_.size, torch::kCPU)),
          owned_(exchange_.partition().owned(exchange_.rank())), node_(node), sums_(sums) {
        precision_.compute = setting.compute;
    }

    /// Plays the rank, on its thread.
    ///
    /// Returns  the parameters after all steps_per_run
    std::vector<float> play() {
        torch::set_num_threads(1); // both belong to a thread
        at::globalContext().setFlushDenormal(true);
        arena_.fill_from(*models_.front(), owned_);
        exchange_.publish();
        std::vector<nn::Model*> instances;
        for (auto const& model : models_) {
            arena_.adopt(*model);
            instances.push_back(model.get());
        }
        train::SliceOptimizer optimizer(optimizer_options(), layout_, arena_.parameters(), owned_);
        train::LocalStep local({instances, task_, layout_, buffers_, kept_, node_, torch::kCPU,
                                exchange_, alone_, precision_, sums_});
        for (int step = 0; step < steps_per_run; ++step) {
            take_step(local, optimizer, step);
        }
        auto const* const first = exchange_.parameters();
        return {first, first + layout_.size};
    }

  private:
    void take_step(train::LocalStep& local, train::SliceOptimizer& optimizer, int step) {
        auto sum = exchange_.begin();
        local.run(batches_, micro_batches, static_cast<std::uint64_t>(step), sum);
        double weight = 0;
        for (auto const& result : local.results()) {
            weight += result.weight;
        }
        auto const squares_of_blocks = std::move(sum).finish({&weight, 1}, buffers_.bytes());
        buffers_.restore_into(*models_.front());
        double squares = 0;
        for (auto const value : squares_of_blocks) {
            squares += value;
        }
        torch::NoGradGuard const no_grad;
        optimizer.update(arena_.parameters(), local.gradients(),
                         {.rate = 0.01, .step = step + 1, .divisor = weight + std::sqrt(squares)});
        exchange_.publish();
        arena_.refresh();
    }

    comm::Communicator alone_ = comm::Communicator::self();
    test::Schedule schedule_;
    PausingTask task_;
    MadeBatches batches_;
    std::vector<std::shared_ptr<nn::Model>> models_;
    train::Layout layout_;
    train::Buffers buffers_;
    std::vector<train::Buffers> kept_;
    PausingExchange exchange_;
    train::Arena arena_;
    std::vector<train::Range> owned_;
    comm::TreeNode node_;
    train::ThreadReplicaSums* sums_;
    config::Precision precision_;
};

/// Trains with `ranks` threads for ranks.
///
/// Returns  each rank's view of the parameters after all steps_per_run
std::vector<std::vector<float>> train_on(int ranks, Setting const& setting, std::uint64_t seed) {
    auto const model = nn::make_model(setting.model, interface_of(setting), 7);
    auto const size = train::Layout::of(*model).size;
    auto const nodes = comm::subtrees_of_ranks(setting.replicas, ranks);
    auto exchanges = comm::make_thread_exchanges(
        {.nodes = nodes,
         .partition =
             comm::Partition(size, ranks, train::reduction_block, 2 * train::reduction_block),
         .step_sums = 1,
         .payload = train::Buffers(*model).bytes().size(),
         .timeout_seconds = timeout_s});
    train::ThreadReplicaSums sums({0, setting.replicas}, setting.replicas, {}, timeout_s);
    std::vector<std::unique_ptr<Rank>> players;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        players.push_back(std::make_unique<Rank>(setting, std::move(exchanges[rank]), nodes[rank],
                                                 setting.sync_batch_norm ? &sums : nullptr,
                                                 seed * 131 + rank));
    }
    std::vector<std::vector<float>> parameters(nodes.size());
    std::vector<std::exception_ptr> failures(nodes.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        threads.emplace_back([&, rank] {
            try {
                parameters[rank] = players[rank]->play();
            } catch (...) {
                failures[rank] = std::current_exception();
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (auto const& failure : failures) {
        if (failure) {
            std::rethrow_exception(failure);
        }
    }
    return parameters;
}

} // namespace

TEST_CASE("ranks as threads train to the bits of one rank, whatever the schedule") {
    train::configure_torch(config::Run{});
    config::Model const mlp{"mlp", {{"hidden", "90, 70"}, {"dropout", "0.3"}}};
    config::Model const cnn{"cnn", {{"channels", "3, 5"}, {"hidden", "16"}, {"dropout", "0.2"}}};
    for (auto const& setting :
         {Setting{.model = mlp}, Setting{.model = cnn, .ranks = 2, .recompute = true},
          Setting{.model = mlp, .ranks = 2, .concurrent = true, .compute = "bf16"},
          Setting{.model = cnn,
          .replicas = 4,
          .ranks = 2,
          .concurrent = true,
          .sync_batch_norm = true}}) {
        CAPTURE(setting.model.name, setting.ranks, setting.concurrent, setting.sync_batch_norm);
        auto const expected = train_on(1, setting, 99).front();
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
            CAPTURE(seed);
            for (auto const& parameters : train_on(setting.ranks, setting, seed)) {
                CHECK(parameters == expected);
            }
        }
    }
}

TEST_CASE("a sum over the replicas of one rank has no negative zero, as none over processes has") {
    train::ThreadReplicaSums alone({0, 1}, 1, {}, timeout_s);
    std::vector<double> values{-0.0, -1.5};
    alone.sum(0, values);
    CHECK_FALSE(std::signbit(values[0]));
    CHECK(values[1] == -1.5);
}

TEST_CASE("checkpoints in the background hold the state at their start, whatever the schedule") {
    train::configure_torch(config::Run{});
    Setting const setting{
        .model = {"cnn", {{"channels", "3, 5"}, {"hidden", "16"}, {"dropout", "0.2"}}}};
    auto const alone = comm::Communicator::self();
    config::Deck deck;
    deck.model = setting.model;
    deck.run.replicas = 3;
    deck.run.mode = "dp";
    deck.communication.broadcast_buffers = false;
    deck.communication.first_bucket_mb = deck.communication.bucket_mb = 0.02;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        CAPTURE(seed);
        test::Schedule schedule(seed);
        PausingTask const task(schedule);
        auto const another = [&] {
            return nn::make_model(setting.model, interface_of(setting), 7);
        };
        auto const model = another();
        train::Engine engine(
            train::EngineParts::open({alone, deck, *model, task, torch::kCPU, another}));
        MadeBatches batches({0, 3}, schedule);
        ScratchDir const scratch;
        checkpoint::Store const store(scratch / "checkpoints", 5);
        checkpoint::BackgroundWriter writer(alone);
        auto step = [&, done = 0]() mutable {
            engine.step({.batches = batches,
                         .step = done++,
                         .micro_batches = micro_batches,
                         .samples = 3 * micro_batches * batch,
                         .rate = 0.01});
        };
        for (int number = 1; number <= 2; ++number) {
            step();
            auto const snapshot = engine.state().snapshot();
            std::vector<std::byte> before(snapshot.arrays.front().elements * sizeof(float));
            for (auto const& part : snapshot.parts.front()) {
                std::memcpy(before.data() + part.first * sizeof(float), part.bytes.data(),
                            part.bytes.size());
            }
            writer.start(snapshot, store, number, "1");
            step();
            auto const outcome = writer.wait();
            CHECK((outcome && outcome->written));
            checkpoint::Reader const reader(store.path_for(number));
            std::vector<std::byte> written(before.size());
            reader.read(snapshot.arrays.front().name, 0, written);
            CHECK((written == before));
        }
    }
}
