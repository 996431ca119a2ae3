#include "base/random.hpp"
#include "data/plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using data::EvaluationPlan;
using data::PlanOptions;
using data::TrainPlan;

namespace {

/// What a walk through one epoch found.
struct Epoch {
    std::vector<int> times; ///< by position: how often it was learnt
    bool batches_full = true;
    bool evenly = true;
    std::int64_t smallest_micro = 1 << 30; ///< samples of all replicas
};

Epoch walk(TrainPlan const& plan, PlanOptions const& options) {
    Epoch epoch{std::vector<int>(static_cast<std::size_t>(options.samples), 0)};
    for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
        bool const full = step + 1 < plan.steps_per_epoch();
        std::int64_t in_step = 0;
        epoch.evenly = epoch.evenly && plan.micro_batches(step) >= 1 &&
                       plan.micro_batches(step) <= options.accumulate &&
                       (!full || plan.micro_batches(step) == options.accumulate);
        for (int micro = 0; micro < plan.micro_batches(step); ++micro) {
            std::int64_t min = options.samples;
            std::int64_t max = 0;
            std::int64_t together = 0;
            for (int replica = 0; replica < options.replicas; ++replica) {
                auto const part = plan.part(step, micro, replica);
                min = std::min(min, part.count);
                max = std::max(max, part.count);
                together += part.count;
                for (std::int64_t i = 0; i < part.count; ++i) {
                    ++epoch.times.at(static_cast<std::size_t>(part.first + i));
                }
            }
            epoch.evenly = epoch.evenly && max - min <= 1;
            epoch.batches_full =
                epoch.batches_full && (!full || (min == options.batch && max == options.batch));
            epoch.smallest_micro = std::min(epoch.smallest_micro, together);
            in_step += together;
        }
        epoch.evenly = epoch.evenly && in_step == plan.samples_in_step(step);
    }
    return epoch;
}

std::vector<PlanOptions> many_options() {
    std::vector<PlanOptions> all;
    for (std::int64_t const batch : {1, 2, 7, 32}) {
        for (int const replicas : {1, 2, 3, 8}) {
            for (int const accumulate : {1, 2, 3}) {
                auto const step = batch * replicas * accumulate;
                for (std::int64_t const samples :
                     {std::int64_t{2} * replicas, std::int64_t{2} * replicas + 1, step - 1, step,
                      step + 1, 2 * step - 1, 5 * step + batch * replicas + 1, std::int64_t{997}}) {
                    if (samples >= 2 * replicas) {
                        all.push_back({.samples = samples,
                                       .batch = batch,
                                       .replicas = replicas,
                                       .accumulate = accumulate});
                    }
                }
            }
        }
    }
    return all;
}

PlanOptions small() {
    return {.samples = 100, .batch = 4, .replicas = 3, .seed = 11};
}

} // namespace

TEST_CASE("every sample is learnt exactly once an epoch, in steps that fit together") {
    for (auto const& options : many_options()) {
        CAPTURE(options.samples, options.batch, options.replicas, options.accumulate);
        TrainPlan const plan(options);
        auto const epoch = walk(plan, options);
        CHECK(plan.samples_per_epoch() == options.samples);
        CHECK(std::all_of(epoch.times.begin(), epoch.times.end(),
                          [](int times) { return times == 1; }));
        CHECK(epoch.batches_full);
        CHECK(epoch.evenly);
        // Batch norm needs two samples per replica wherever the batch itself has them.
        CHECK(epoch.smallest_micro >= std::min<std::int64_t>(options.batch, 2) * options.replicas);
    }
}

TEST_CASE("a short rest joins the step before, a longer one is a step of its own") {
    auto options = small(); // 12 samples per step, fewer than 6 are merged
    options.samples = 24 + 5;
    CHECK(TrainPlan(options).steps_per_epoch() == 2);
    CHECK(TrainPlan(options).samples_in_step(1) == 17);
    options.samples = 24 + 6;
    CHECK(TrainPlan(options).steps_per_epoch() == 3);
    CHECK(TrainPlan(options).samples_in_step(2) == 6);
}

TEST_CASE("a short rest of a step's micro-batches joins the micro-batch before") {
    auto options = small(); // 12 samples per micro-batch
    options.accumulate = 3;
    options.samples = 36 + 12 + 1;
    TrainPlan const plan(options);
    CHECK(plan.steps_per_epoch() == 2);
    CHECK(plan.micro_batches(1) == 1);
    CHECK(plan.part(1, 0, 2).count == 5);
}

TEST_CASE("drop-last leaves out the short step and nothing else") {
    for (auto options : many_options()) {
        options.drop_last = true;
        auto const step = options.batch * options.replicas * options.accumulate;
        if (options.samples < step) {
            continue;
        }
        CAPTURE(options.samples, step);
        TrainPlan const plan(options);
        CHECK(plan.steps_per_epoch() == options.samples / step);
        CHECK(plan.samples_per_epoch() == plan.steps_per_epoch() * step);
        CHECK(plan.samples_in_step(plan.steps_per_epoch() - 1) == step);
        auto const times = walk(plan, options).times;
        CHECK(std::count(times.begin(), times.end(), 1) == plan.samples_per_epoch());
    }
}

TEST_CASE("too few samples are refused with the remedy") {
    auto options = small();
    options.samples = 5;
    auto const error = test::error_of([&] { TrainPlan const plan(options); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "5 training samples for 3 replicas"));
    CHECK(test::says(error, "run.replicas to at most 2"));

    options.samples = 3;
    CHECK(test::says(test::error_of([&] { TrainPlan const plan(options); }),
                     "Set run.replicas = 1, or add samples"));

    options.samples = 11;
    options.drop_last = true;
    auto const none_left = test::error_of([&] { TrainPlan const plan(options); });
    CHECK(none_left.code() == ExitCode::usage);
    CHECK(test::says(none_left, "data.drop-last"));
}

TEST_CASE("an epoch's order depends on seed and epoch alone") {
    auto const options = small();
    data::Span const whole{0, options.samples};
    auto const first = TrainPlan(options).indices(0, whole);
    auto sorted = first;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::int64_t> every(100);
    std::iota(every.begin(), every.end(), 0);
    CHECK(sorted == every);
    CHECK(first != every);
    CHECK(TrainPlan(options).indices(1, whole) != first);

    auto other = options;
    other.batch = 9;
    other.replicas = 2;
    CHECK(TrainPlan(other).indices(0, whole) == first);
    other.seed = 12;
    CHECK(TrainPlan(other).indices(0, whole) != first);
    other.shuffle = data::Shuffle::none;
    CHECK(TrainPlan(other).indices(3, whole) == every);
}

namespace {

/// 300 samples whose lengths have no order, in windows of 5 micro-batches of 12.
PlanOptions bucketed(std::int64_t samples = 300) {
    auto options = small();
    options.samples = samples;
    options.accumulate = 2;
    options.bucket = 5;
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < samples; ++i) {
        lengths.push_back(1 + i * 7919 % 97);
    }
    options.lengths = std::make_shared<std::vector<std::int64_t> const>(lengths);
    return options;
}

/// What padding adds: the longest of each micro-batch, times its samples, over the sum of lengths.
double padded(TrainPlan const& plan, PlanOptions const& options) {
    std::int64_t all = 0;
    std::int64_t own = 0;
    for (std::int64_t first = 0; first + 12 <= options.samples; first += 12) {
        std::int64_t longest = 0;
        for (auto const sample : plan.indices(3, {first, 12})) {
            auto const length = (*options.lengths)[static_cast<std::size_t>(sample)];
            longest = std::max(longest, length);
            own += length;
        }
        all += 12 * longest;
    }
    return static_cast<double>(all) / static_cast<double>(own);
}

} // namespace

TEST_CASE("buckets hold samples of about one length, and every sample once") {
    for (std::int64_t const samples : {300, 307, 311, 25, 13}) {
        auto const options = bucketed(samples);
        CAPTURE(samples);
        TrainPlan const plan(options);
        auto whole = plan.indices(3, {0, samples});
        std::vector<std::int64_t> parts;
        for (std::int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
            for (int micro = 0; micro < plan.micro_batches(step); ++micro) {
                for (int replica = 0; replica < options.replicas; ++replica) {
                    auto const own = plan.indices(3, plan.part(step, micro, replica));
                    parts.insert(parts.end(), own.begin(), own.end());
                }
            }
        }
        CHECK(parts == whole);
        CHECK((samples < 60 || plan.indices(4, {0, samples}) != whole));
        std::sort(whole.begin(), whole.end());
        std::vector<std::int64_t> every(static_cast<std::size_t>(samples));
        std::iota(every.begin(), every.end(), 0);
        CHECK(whole == every);
    }
    auto options = bucketed();
    auto const sorted = padded(TrainPlan(options), options);
    options.bucket = 0;
    CHECK(sorted < 1.3);
    CHECK(padded(TrainPlan(options), options) > 1.6);
}

TEST_CASE("buckets keep each window's samples, and do not always go from short to long") {
    auto options = bucketed();
    TrainPlan const plan(options);
    auto plain_options = options;
    plain_options.bucket = 0;
    TrainPlan const plain(plain_options);
    int ascending = 0;
    for (std::int64_t window = 0; window < 5; ++window) {
        auto mine = plan.indices(0, {window * 60, 60});
        auto const length = [&](std::size_t at) {
            return (*options.lengths)[static_cast<std::size_t>(mine[at])];
        };
        ascending += length(0) < length(12) && length(12) < length(24) && length(24) < length(36);
        auto others = plain.indices(0, {window * 60, 60});
        std::sort(mine.begin(), mine.end());
        std::sort(others.begin(), others.end());
        CHECK(mine == others);
    }
    CHECK(ascending < 3);
}

TEST_CASE("drop-last leaves out the same samples with and without buckets") {
    auto options = bucketed(307);
    options.drop_last = true;
    TrainPlan const plan(options);
    auto mine = plan.indices(0, {0, plan.samples_per_epoch()});
    options.bucket = 0;
    auto others = TrainPlan(options).indices(0, {0, plan.samples_per_epoch()});
    std::sort(mine.begin(), mine.end());
    std::sort(others.begin(), others.end());
    CHECK(mine == others);
}

TEST_CASE("buckets and an order by blocks are refused together") {
    auto options = bucketed();
    options.shuffle = data::Shuffle::block;
    auto const error = test::error_of([&] { TrainPlan const plan(options); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "data.bucket-by-length"));
}

TEST_CASE("any part of an order can be asked for by itself") {
    TrainPlan const plan(small());
    auto const whole = plan.indices(4, {0, 100});
    CHECK(plan.indices(4, {37, 5}) ==
          std::vector<std::int64_t>(whole.begin() + 37, whole.begin() + 42));
    CHECK(plan.indices(4, {37, 0}).empty());
}

TEST_CASE("evaluation covers every sample once, each batch on one rank") {
    for (std::int64_t const samples : {1, 7, 8, 9, 1000}) {
        EvaluationPlan const plan{samples, 8};
        for (int const ranks : {1, 2, 3, 5, 200}) {
            CAPTURE(samples, ranks);
            std::int64_t next_batch = 0;
            std::int64_t next_sample = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                auto const own = plan.batches_of(rank, ranks);
                CHECK(own.first == next_batch);
                for (std::int64_t j = own.first; j < own.first + own.count; ++j) {
                    CHECK(plan.part(j).first == next_sample);
                    CHECK(plan.part(j).count >= 1);
                    CHECK(plan.part(j).count <= 8);
                    next_sample += plan.part(j).count;
                }
                next_batch += own.count;
            }
            CHECK(next_batch == plan.batches());
            CHECK(next_sample == samples);
        }
    }
}

TEST_CASE("a step draws each sample with the same probability, and deals what it has drawn") {
    constexpr std::int64_t samples = 1000;
    auto const draw =
        std::make_shared<data::PoissonDraw const>(samples, 0.048, [](std::int64_t step) {
            return random_key(7, Stream::order, {static_cast<std::uint64_t>(step)});
        });
    PlanOptions options{.samples = samples, .batch = 4, .replicas = 3, .accumulate = 4};
    options.drawn = draw;
    TrainPlan const plan(options);
    REQUIRE(plan.steps_per_epoch() == 20); // of 48 samples on average
    std::vector<double> times(samples, 0);
    std::int64_t drawn = 0;
    double squares = 0; // of how far a step's number is from its mean
    constexpr int epochs = 50;
    for (std::int64_t step = 0; step < epochs * 20; ++step) {
        std::vector<std::int64_t> dealt;
        for (int micro = 0; micro < plan.micro_batches(step % 20); ++micro) {
            for (int replica = 0; replica < 3; ++replica) {
                auto const part = plan.indices(step / 20, plan.part(step % 20, micro, replica));
                dealt.insert(dealt.end(), part.begin(), part.end());
            }
        }
        REQUIRE(dealt == *draw->draw(step));
        for (auto const sample : dealt) {
            ++times[static_cast<std::size_t>(sample)];
        }
        auto const count = static_cast<std::int64_t>(dealt.size());
        drawn += count;
        squares += static_cast<double>((count - 48) * (count - 48));
    }
    CHECK(std::abs(static_cast<double>(drawn) - 48000) < 5 * std::sqrt(48000 * 0.952));
    CHECK(squares / 1000 == Approx(48 * 0.952).epsilon(0.25)); // binomial: no fixed number
    CHECK(*std::ranges::max_element(times) < 48 + 6 * std::sqrt(48));
    CHECK(*std::ranges::min_element(times) > 48 - 6 * std::sqrt(48));
    CHECK(data::PoissonDraw(5, 1, [](auto) { return 1; }).draw(0)->size() == 5);
}

TEST_CASE("a step that would draw more samples than there are is refused") {
    PlanOptions options{.samples = 10, .batch = 11};
    options.drawn =
        std::make_shared<data::PoissonDraw const>(10, 1, [](std::int64_t) { return 1; });
    CHECK(test::code_of([&] { TrainPlan const plan(options); }) == ExitCode::usage);
}
