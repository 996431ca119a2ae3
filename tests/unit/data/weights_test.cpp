#include "base/random.hpp"
#include "data/plan.hpp"
#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

using Weights = std::vector<double>;

std::shared_ptr<WeightedOrder const> order_of(Weights const& weights, bool replacement) {
    return weighted_order(std::make_shared<Weights const>(weights), replacement);
}

std::vector<std::int64_t> drawn(WeightedOrder const& order, std::uint64_t key, Span positions) {
    std::vector<std::int64_t> samples(static_cast<std::size_t>(positions.count));
    order.draw(key, positions, samples);
    return samples;
}

/// Pearson's statistic of counts against probabilities; what cannot come must not have come.
double chi_square(std::vector<double> const& counts, Weights const& probabilities) {
    double const all = std::accumulate(counts.begin(), counts.end(), 0.0);
    double sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        double const expected = all * probabilities[i];
        if (expected == 0) {
            CHECK(counts[i] == 0);
        } else {
            sum += (counts[i] - expected) * (counts[i] - expected) / expected;
        }
    }
    return sum;
}

Weights const few{0, 1, 2, 3, 0, 4, 10, 0}; // their sum is 20

Weights shares_of(Weights weights) {
    double const sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (auto& weight : weights) {
        weight /= sum;
    }
    return weights;
}

PlanOptions weighted_plan(bool replacement) {
    Weights weights;
    for (int i = 0; i < 100; ++i) {
        weights.push_back(i % 7);
    }
    auto const order = order_of(weights, replacement);
    return {
        .samples = order->positions(), .batch = 4, .replicas = 3, .weighted = order, .seed = 11};
}

void add_weights(std::filesystem::path const& path, Weights const& weights) {
    auto const labels = std::vector<std::int64_t>(4, 0);
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::f32, {4, 2});
    file.write("inputs", h5::Type::f32, std::vector<float>(8, 1.0F));
    file.create_dataset("targets", h5::Type::i64, {4});
    file.write("targets", h5::Type::i64, labels);
    file.create_dataset("sample_weights", h5::Type::f64, {weights.size()});
    file.write("sample_weights", h5::Type::f64, weights);
    file.close();
}

} // namespace

TEST_CASE("with replacement samples come as often as their weights say") {
    auto const order = order_of(few, true);
    REQUIRE(order->positions() == 8);
    std::vector<double> counts(few.size(), 0);
    for (std::uint64_t epoch = 0; epoch < 3000; ++epoch) {
        for (auto const sample : drawn(*order, random_key(1, Stream::weights, {epoch}), {0, 8})) {
            ++counts.at(static_cast<std::size_t>(sample));
        }
    }
    CHECK(chi_square(counts, shares_of(few)) < 18.5); // p = 0.001 with 4 degrees of freedom

    Weights many(1000);
    std::iota(many.begin(), many.end(), 1);
    counts.assign(many.size(), 0);
    for (std::uint64_t epoch = 0; epoch < 300; ++epoch) {
        for (auto const sample :
             drawn(*order_of(many, true), random_key(1, Stream::weights, {epoch}), {0, 1000})) {
            ++counts.at(static_cast<std::size_t>(sample));
        }
    }
    auto const statistic = chi_square(counts, shares_of(many));
    CHECK(statistic < 1143); // p = 0.001 with 999 degrees of freedom, on either side
    CHECK(statistic > 867);
}

TEST_CASE("without replacement each sample comes once, and the next by what is left") {
    auto const order = order_of(few, false);
    REQUIRE(order->positions() == 5); // a sample without weight never comes
    std::vector<double> first(few.size(), 0);
    std::vector<double> second(few.size(), 0);
    for (std::uint64_t epoch = 0; epoch < 10000; ++epoch) {
        auto samples = drawn(*order, random_key(1, Stream::weights, {epoch}), {0, 5});
        ++first.at(static_cast<std::size_t>(samples[0]));
        ++second.at(static_cast<std::size_t>(samples[1]));
        std::sort(samples.begin(), samples.end());
        REQUIRE(samples == std::vector<std::int64_t>{1, 2, 3, 5, 6});
    }
    Weights after(few.size(), 0); // the probability of each to come second
    for (std::size_t i = 0; i < few.size(); ++i) {
        for (std::size_t j = 0; j < few.size(); ++j) {
            after[j] += i == j ? 0 : few[i] / 20 * few[j] / (20 - few[i]);
        }
    }
    CHECK(chi_square(first, shares_of(few)) < 18.5);
    CHECK(chi_square(second, after) < 18.5);
}

TEST_CASE(
    "an order by weight is the same read in parts, by threads and in several epochs at once") {
    for (bool const replacement : {true, false}) {
        CAPTURE(replacement);
        auto const options = weighted_plan(replacement);
        auto const size = options.samples;
        TrainPlan const plan(options);
        CHECK(size == (replacement ? 100 : 85));
        std::vector<std::vector<std::int64_t>> epochs;
        for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
            epochs.push_back(plan.indices(epoch, {0, size}));
        }
        CHECK(epochs[0] != epochs[1]);
        TrainPlan const again(weighted_plan(replacement));
        std::vector<int> wrong(4, 0);
        {
            std::vector<std::jthread> threads;
            for (std::size_t t = 0; t < wrong.size(); ++t) {
                threads.emplace_back([&, t] {
                    for (auto i = static_cast<std::int64_t>(t); i < 3 * size; i += 3) {
                        auto const epoch = i % 3;
                        auto const at = (i * 37) % size;
                        wrong[t] +=
                            again.indices(epoch, {at, 1}).front() !=
                            epochs[static_cast<std::size_t>(epoch)][static_cast<std::size_t>(at)];
                    }
                });
            }
        }
        CHECK(wrong == std::vector<int>(4, 0));

        // Neither batch nor replicas matter, as for any order; the seed does.
        auto other = weighted_plan(replacement);
        other.batch = 9;
        other.replicas = 2;
        CHECK(TrainPlan(other).indices(1, {0, size}) == epochs[1]);
        other.seed = 12;
        CHECK(TrainPlan(other).indices(1, {0, size}) != epochs[1]);
        other.shuffle = Shuffle::block;
        auto const error = test::error_of([&] { TrainPlan const refused(other); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, "data.sample-weights"));
    }
}

TEST_CASE("weights of all sizes keep their shares") {
    // A weight that is lost beside a large one is one that practically never comes.
    auto const order = order_of({1e-300, 1e300, 0, 1e300}, true);
    for (auto const sample : drawn(*order, 5, {0, 1000})) {
        CHECK((sample == 1 || sample == 3));
    }
    auto const once = drawn(*order_of({1e-300, 1e300, 0, 1e300}, false), 5, {0, 3});
    CHECK(once.back() == 0);
    auto const error = test::error_of([] {
        order_of({std::numeric_limits<double>::max(), 1e308}, true);
    });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "too large"));
}

TEST_CASE("weights come from the files, in their order, and are part of the data") {
    test::ScratchDir const scratch;
    auto const [a, b] = std::pair(scratch / "a.h5", scratch / "b.h5");
    add_weights(a, {1, 2, 3, 4});
    add_weights(b, {0, 0, 0, 0});
    auto const files = a.string() + "," + b.string();
    Dataset const set({.files = files, .weights = "sample_weights"});
    CHECK(*set.weights() == Weights{1, 2, 3, 4, 0, 0, 0, 0});
    CHECK(Dataset({.files = files}).weights() == nullptr);
    auto const before = set.fingerprint();
    CHECK(before != Dataset({.files = files}).fingerprint());
    add_weights(a, {1, 2, 3, 5});
    CHECK(Dataset({.files = files, .weights = "sample_weights"}).fingerprint() != before);
}

TEST_CASE("weights that are none are refused by file and sample") {
    test::ScratchDir const scratch;
    auto const path = scratch / "a.h5";
    auto const refused = [&](Weights const& weights, std::string const& name = "sample_weights") {
        add_weights(path, weights);
        auto const error =
            test::error_of([&] { Dataset const set({.files = path.string(), .weights = name}); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, path.string()));
        return std::string(error.what());
    };
    using Catch::Matchers::Contains;
    auto const infinity = std::numeric_limits<double>::infinity();
    CHECK_THAT(refused({1, -0.5, 1, 1}), Contains("weight -0.5 of sample 1"));
    CHECK_THAT(refused({1, 1, 1, infinity}), Contains("weight inf of sample 3"));
    CHECK_THAT(refused({1, 1, std::nan(""), 1}), Contains("of sample 2"));
    CHECK_THAT(refused({0, 0, 0, 0}), Contains("all 4 weights in dataset sample_weights are 0"));
    CHECK_THAT(refused({1, 1, 1}), Contains("3 weights"));
    CHECK_THAT(refused({1, 1, 1, 1}, "others"), Contains("no dataset named others"));
    CHECK_THAT(refused({1, 1, 1, 1}, "inputs"), Contains("8 weights for 4 samples"));
}
