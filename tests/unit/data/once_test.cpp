// The property that all rests on: whatever the numbers, the workers and the interruptions, an epoch
// hands out every sample once, in one order.

#include "base/random.hpp"
#include "data/loader.hpp"
#include "data/plan.hpp"
#include "h5/file.hpp"

#include <algorithm>
#include <numeric>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

/// Numbers that are the same in every run of the test.
class Dice {
  public:
    explicit Dice(std::uint64_t seed) : state_(seed) {}
    std::int64_t between(std::int64_t min, std::int64_t max) {
        state_ = mixed(state_);
        return min + static_cast<std::int64_t>(state_ % static_cast<std::uint64_t>(max - min + 1));
    }

  private:
    std::uint64_t state_;
};

PlanOptions random_options(Dice& dice) {
    auto const replicas = static_cast<int>(dice.between(1, 9));
    PlanOptions options{.samples = dice.between(2 * replicas, 400),
                        .batch = dice.between(1, 12),
                        .replicas = replicas,
                        .accumulate = static_cast<int>(dice.between(1, 3)),
                        .shuffle = static_cast<Shuffle>(dice.between(0, 2)),
                        .blocks = {dice.between(1, 40), dice.between(1, 5)},
                        .seed = static_cast<std::uint64_t>(dice.between(0, 1 << 20))};
    if (options.shuffle == Shuffle::full && dice.between(0, 1) == 1) {
        auto const weights = std::make_shared<std::vector<double>>();
        for (std::int64_t i = 0; i < options.samples; ++i) {
            weights->push_back(static_cast<double>(dice.between(1, 1000)));
        }
        options.weighted = weighted_order(weights, false);
    }
    return options;
}

/// Sample i holds i.
void write_set(std::filesystem::path const& path, std::int64_t samples) {
    std::vector<float> values(static_cast<std::size_t>(samples));
    std::iota(values.begin(), values.end(), 0.0F);
    std::vector<std::int64_t> const labels(values.size(), 0);
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::f32, {values.size()});
    file.create_dataset("targets", h5::Type::i64, {values.size()});
    file.write("inputs", h5::Type::f32, values);
    file.write("targets", h5::Type::i64, labels);
    file.close();
}

/// What a job of `ranks` reads in steps [first, end): by replica, one after the other.
void train(Dataset const& set, TrainPlan const& plan, PlanOptions const& options, Span steps,
           int ranks, Dice& dice, std::vector<std::vector<std::int64_t>>& learnt) {
    for (int rank = 0; rank < ranks; ++rank) {
        int const begin = options.replicas * rank / ranks;
        int const end = options.replicas * (rank + 1) / ranks;
        std::vector<std::pair<int, Span>> parts;
        for (auto step = steps.first; step < steps.first + steps.count; ++step) {
            for (int micro = 0; micro < plan.micro_batches(step); ++micro) {
                for (int replica = begin; replica < end; ++replica) {
                    parts.emplace_back(replica, plan.part(step, micro, replica));
                }
            }
        }
        Loader loader(set,
                      [&](std::int64_t k) -> std::optional<std::vector<std::int64_t>> {
                          if (k >= static_cast<std::int64_t>(parts.size())) {
                              return std::nullopt;
                          }
                          return plan.indices(1, parts[static_cast<std::size_t>(k)].second);
                      },
                      {static_cast<int>(dice.between(1, 4)), static_cast<int>(dice.between(1, 5))});
        for (auto const& [replica, part] : parts) {
            for (auto const value : loader.next().inputs()) {
                learnt[static_cast<std::size_t>(replica)].push_back(
                    static_cast<std::int64_t>(value));
            }
        }
    }
}

} // namespace

TEST_CASE("every sample once an epoch, for random sizes, ranks, workers and interruptions") {
    test::ScratchDir const scratch;
    Dice dice(20260801);
    for (int trial = 0; trial < 150; ++trial) {
        auto const options = random_options(dice);
        CAPTURE(trial, options.samples, options.batch, options.replicas, options.accumulate,
                static_cast<int>(options.shuffle), options.blocks.samples, options.blocks.window,
                options.weighted != nullptr);
        write_set(scratch / "set.h5", options.samples);
        Dataset const set({(scratch / "set.h5").string()});
        TrainPlan const plan(options);
        auto const steps = plan.steps_per_epoch();
        auto const replicas = static_cast<std::size_t>(options.replicas);

        std::vector<std::vector<std::int64_t>> alone(replicas);
        train(set, plan, options, {0, steps}, 1, dice, alone);
        std::vector<int> times(static_cast<std::size_t>(options.samples), 0);
        for (auto const& samples : alone) {
            for (auto const sample : samples) {
                ++times.at(static_cast<std::size_t>(sample));
            }
        }
        CHECK(std::all_of(times.begin(), times.end(), [](int t) { return t == 1; }));

        // Interrupted, and resumed on another number of ranks: the cursor is the step.
        std::vector<std::vector<std::int64_t>> interrupted(replicas);
        for (std::int64_t step = 0; step < steps;) {
            auto const more = dice.between(1, steps - step);
            train(set, plan, options, {step, more},
                  static_cast<int>(dice.between(1, options.replicas)), dice, interrupted);
            step += more;
        }
        CHECK(interrupted == alone);
    }
}

TEST_CASE("each replica learns blocks of its own") {
    PlanOptions const options{.samples = 1000,
                              .batch = 5,
                              .replicas = 4,
                              .shuffle = Shuffle::block,
                              .blocks = {25, 2},
                              .seed = 3};
    TrainPlan const plan(options);
    std::vector<std::vector<bool>> met(4, std::vector<bool>(40, false));
    for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
        for (int replica = 0; replica < 4; ++replica) {
            for (auto const sample : plan.indices(0, plan.part(step, 0, replica))) {
                met[static_cast<std::size_t>(replica)][static_cast<std::size_t>(sample / 25)] =
                    true;
            }
        }
    }
    for (auto const& blocks : met) {
        CHECK(std::count(blocks.begin(), blocks.end(), true) == 10);
    }
}
