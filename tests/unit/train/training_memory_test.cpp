// What is predicted of a run's memory, against what the engine takes.

#include "batches/training_memory.hpp"
#include "comm/exchange.hpp"
#include "comm/partition.hpp"
#include "lockstep/task/task.hpp"
#include "optimizer/optimizer.hpp"
#include "step/engine.hpp"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "catch.hpp"
#include "error_of.hpp"
#include "small_model.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

/// Counts the tensors of one size that this thread makes, while it is the thread's debug
/// information.
class TensorsOfSize : public c10::MemoryReportingInfoBase {
  public:
    explicit TensorsOfSize(std::int64_t bytes) : bytes_(bytes) {}
    void reportMemoryUsage(void* /*memory*/, std::int64_t bytes, std::size_t /*allocated*/,
                           std::size_t /*reserved*/, c10::Device /*device*/) override {
        count_ += bytes == bytes_ ? 1 : 0;
    }
    bool memoryProfilingEnabled() const override { return true; }
    int count() const noexcept { return count_; }

  private:
    std::int64_t bytes_;
    int count_ = 0;
};

/// Arrays of the arena's size that an engine on one rank allocates.
int arrays_of_engine(config::Deck const& deck) {
    auto const alone = comm::Communicator::self();
    auto const model = test::small_model();
    auto const task = task::make_task(
        {"classification", {}, {}},
        {.inputs = {{.name = "inputs", .type = h5::Type::f32, .shape = {5, 31}}},
         .targets = {{.name = "targets", .type = h5::Type::i64, .shape = {}, .whole = true}},
         .class_names = std::vector<std::string>(10, "a")});
    auto parts = EngineParts::open({alone, deck, *model, *task, torch::kCPU});
    auto const bytes = parts->layout.size * static_cast<std::int64_t>(sizeof(float));
    auto const made = std::make_shared<TensorsOfSize>(bytes);
    c10::DebugInfoGuard const guard(c10::DebugInfoKind::PROFILER_STATE, made);
    Engine const engine(std::move(parts));
    return made->count();
}

config::Optimizer rule(std::string const& name, double ema = 0, double proximal = 0) {
    config::Optimizer options;
    options.name = name;
    options.momentum = name == "sgd" ? 0.9 : 0;
    options.ema = ema;
    options.proximal = proximal;
    return options;
}

} // namespace

TEST_CASE("an engine allocates the arrays that are predicted") {
    for (auto const& optimizer : {rule("adamw"), rule("sgd"), rule("adamw", 0.9, 0.1)}) {
        for (int const replicas : {1, 2, 3, 4, 5, 8}) {
            CAPTURE(optimizer.name, optimizer.ema, replicas);
            config::Deck deck;
            deck.run.replicas = replicas;
            deck.optimizer = optimizer;
            auto const predicted = training_memory(deck, equal_share(1, replicas, 1));
            auto const arrays = (predicted.gradients + predicted.optimizer) / sizeof(float);
            CHECK(arrays_of_engine(deck) == arrays - 1); // one is the exchange's
        }
    }
}

TEST_CASE("a rank's part of the optimizer's state takes what is predicted") {
    auto const model = test::small_model();
    auto const layout = Layout::of(*model);
    auto const parameters = torch::zeros({layout.size});
    constexpr int ranks = 3;
    comm::Partition const partition(layout.size, ranks, layout.size, layout.size);
    for (auto const& options : {rule("adamw"), rule("sgd"), rule("lamb", 0.9)}) {
        for (int rank = 0; rank < ranks; ++rank) {
            CAPTURE(options.name, rank);
            auto const owned = partition.owned(rank);
            RankShare share = equal_share(static_cast<double>(layout.size), 1, ranks);
            share.owned = 0;
            for (auto const& range : owned) {
                share.owned += static_cast<double>(range.count());
            }
            SliceOptimizer const optimizer(options, layout, parameters, owned);
            double bytes = 0;
            for (std::size_t at = 0; at < optimizer.state_names().size(); ++at) {
                bytes += static_cast<double>(optimizer.state(at).nbytes());
            }
            config::Deck deck;
            deck.optimizer = options;
            CHECK(training_memory(deck, share).optimizer == bytes);
        }
    }
}

TEST_CASE("what comes and goes is there once, and a rank keeps its own") {
    constexpr double size = 64 << 20;
    constexpr double array = size * sizeof(float);
    auto const of = [&](std::string const& update, double largest) {
        config::Deck deck;
        deck.optimizer.update = update;
        deck.communication.bucket_mb = 4;
        auto share = equal_share(size, 1, 4);
        share.largest = largest;
        return training_memory(deck, share);
    };
    constexpr double buckets = comm::gradient_buckets_ahead * 4e6;
    auto const sharded = of("sharded", 1);
    CHECK(sharded.parameters == 2 * array); // as they are made, too, which the allocator keeps
    CHECK(sharded.gradients == array);
    auto const gradients = of("sharded-gradients", 1);
    CHECK(gradients.parameters == array);
    CHECK(gradients.gradients == array / 4 + buckets);
    CHECK(gradients.exchange == buckets);
    auto const parameters = of("fully-sharded", 1);
    CHECK(parameters.parameters == array / 4 + 2 * 4e6);
    CHECK(parameters.gradients == gradients.gradients);
    // A layer is read and written as a whole.
    auto const layer = of("fully-sharded", size / 8);
    CHECK(layer.parameters == array / 4 + 2 * array / 8);
    CHECK(layer.gradients == array / 4 + array / 8);
}

TEST_CASE("what does not fit is refused with what is needed and what is there") {
    CHECK_NOTHROW(require_memory(1024, 1024));
    auto const error = test::error_of([] { require_memory(4096, 1024); });
    CHECK(error.code() == ExitCode::memory);
    CHECK(test::says(error, "needs at least 4.0 KiB, but only 1.0 KiB"));
}
