#include "optimizer/optimizer.hpp"
#include "optimizer/prune_mask.hpp"
#include "optimizer/prune_schedule.hpp"
#include "optimizer/pruning.hpp"

#include <algorithm>
#include <vector>

#include "catch.hpp"
#include "error_of.hpp"
#include "small_model.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

/// A convolution of [2, 8, 3] and a bias of 2, behind which a matrix of [2, 5] lies.
Layout small_layout() {
    return {{{"conv.weight", {2, 8, 3}, 0, 48},
             {"conv.bias", {2}, 64, 2},
             {"linear.weight", {2, 5}, 128, 10}},
            reduction_block,
            60};
}

config::Prune pattern(std::string const& name, double sparsity = 0.5) {
    config::Prune prune;
    prune.pattern = name;
    prune.sparsity = sparsity;
    return prune;
}

std::vector<float> drawn_scores(std::int64_t size, std::uint64_t seed) {
    torch::manual_seed(seed);
    auto const values = torch::randint(0, 6, {size}).to(torch::kFloat32); // many ties
    return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + size};
}

} // namespace

TEST_CASE("of each group of neighbouring inputs as many weights stay as the pattern says") {
    auto const layout = small_layout();
    for (auto const& [name, kept, group] :
         {std::tuple{"2:4", 2, 4}, std::tuple{"1:4", 1, 4}, std::tuple{"3:5", 3, 5}}) {
        auto const scores = drawn_scores(layout.size, 1);
        auto const mask = prune_mask(pattern(name), layout, scores, 0);
        std::int64_t removed = 0;
        for (auto const& entry : {layout.entries[0], layout.entries[2]}) {
            auto const inputs = entry.shape[1];
            auto const inner = entry.count / (entry.shape[0] * inputs);
            for (std::int64_t row = 0; row < entry.shape[0]; ++row) {
                for (std::int64_t at = 0; at < inner; ++at) {
                    for (std::int64_t first = 0; first < inputs; first += group) {
                        float min_kept = 10;
                        float max_gone = -1;
                        std::int64_t gone = 0;
                        for (auto i = first; i < std::min<std::int64_t>(first + group, inputs);
                             ++i) {
                            auto const place = static_cast<std::size_t>(
                                entry.first + (row * inputs + i) * inner + at);
                            if (mask.removed[place] != 0) {
                                ++gone;
                                max_gone = std::max(max_gone, scores[place]);
                            } else {
                                min_kept = std::min(min_kept, scores[place]);
                            }
                        }
                        bool const whole = first + group <= inputs;
                        CHECK(gone == (whole ? group - kept : 0));
                        CHECK(max_gone <= min_kept);
                        removed += gone;
                    }
                }
            }
        }
        CHECK(mask.count == removed);
        CHECK(std::ranges::count(mask.removed, 1) == removed);
        CHECK(mask.removed[64] == 0); // a bias
    }
}

TEST_CASE("of equal scores the first ones of the arena go") {
    auto const layout = small_layout();
    std::vector<float> const same(static_cast<std::size_t>(layout.size), 1);
    auto const half = prune_mask(pattern("unstructured"), layout, same, 0.5);
    CHECK(half.candidates == 58);
    CHECK(half.count == 29);
    for (std::size_t i = 0; i < 29; ++i) {
        CHECK(half.removed[i] == 1);
    }
    CHECK(std::ranges::count(half.removed, 1) == 29);
    auto const groups = prune_mask(pattern("2:4"), layout, same, 0);
    for (std::size_t i = 0; i < 24; ++i) { // of the first output: inputs 0, 1, 4 and 5
        CHECK(groups.removed[i] == ((i / 3) % 4 < 2 ? 1 : 0));
    }
}

TEST_CASE("scores decide over all weights or within each layer") {
    auto const layout = small_layout();
    std::vector<float> scores(static_cast<std::size_t>(layout.size), 2);
    std::fill(scores.begin() + 128, scores.begin() + 137, 1.F); // nine of the matrix's ten
    auto prune = pattern("unstructured");
    auto const global = prune_mask(prune, layout, scores, 9.0 / 58);
    CHECK(std::ranges::count(global.removed.begin() + 128, global.removed.begin() + 138, 1) == 9);
    CHECK(global.count == 9);
    scores[137] = 1;
    auto const error = test::error_of([&] { prune_mask(prune, layout, scores, 10.0 / 58); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "would be removed"));
    prune.scope = "layer";
    auto const by_layer = prune_mask(prune, layout, scores, 0.5);
    CHECK(std::ranges::count(by_layer.removed.begin(), by_layer.removed.begin() + 48, 1) == 24);
    CHECK(std::ranges::count(by_layer.removed.begin() + 128, by_layer.removed.end(), 1) == 5);
    prune.except = "conv.*";
    auto const exempt = prune_mask(prune, layout, scores, 0.5);
    CHECK(exempt.candidates == 10);
    CHECK(exempt.count == 5);
}

TEST_CASE("what no pattern can take from is refused") {
    auto const layout = small_layout();
    auto const code_of = [&](config::Prune const& prune) {
        return test::code_of([&] { pruned_entries(prune, layout); });
    };
    CHECK(code_of(pattern("2:4")) == ExitCode::ok);
    CHECK(code_of(pattern("4:16")) == ExitCode::usage);
    auto prune = pattern("unstructured");
    prune.except = "*.weight";
    CHECK(code_of(prune) == ExitCode::usage);
    prune.except = "*.wait";
    CHECK(code_of(prune) == ExitCode::usage);
}

TEST_CASE("weights go at once, or by a cubic schedule") {
    auto prune = pattern("unstructured", 0.8);
    prune.begin = 10;
    PruneSchedule const once(prune);
    CHECK(once.is_due(10));
    CHECK_FALSE(once.is_due(9));
    CHECK_FALSE(once.is_due(11));
    CHECK(once.share_at(10) == 0.8);
    prune.end = 35;
    prune.every = 10;
    PruneSchedule const cubic(prune);
    std::vector<std::int64_t> due;
    for (std::int64_t step = 0; step < 60; ++step) {
        if (cubic.is_due(step)) {
            due.push_back(step);
        }
    }
    CHECK(due == std::vector<std::int64_t>{10, 20, 30, 35});
    CHECK(cubic.share_at(10) == 0);
    CHECK(cubic.share_at(20) == Approx(0.8 * (1 - 0.6 * 0.6 * 0.6)));
    CHECK(cubic.share_at(35) == 0.8);
    CHECK(test::code_of([&] { cubic.require_within(36); }) == ExitCode::ok);
    CHECK(test::code_of([&] { cubic.require_within(35); }) == ExitCode::usage);
    prune.begin = 0;
    prune.score = "taylor";
    CHECK(test::code_of([&] { PruneSchedule const schedule(prune); }) == ExitCode::usage);
}

TEST_CASE("removed weights stay 0 under every rule, whoever owns them, and so does their state") {
    auto const layout = Layout::of(*test::small_model());
    for (std::string const rule : {"adamw", "adam", "sgd", "lars", "lamb"}) {
        for (std::string const score : {"magnitude", "taylor"}) {
            config::Optimizer options;
            options.name = rule;
            options.momentum = rule == "sgd" || rule == "lars" ? 0.9 : 0;
            options.ema = 0.9;
            auto prune = pattern("unstructured", 0.7);
            prune.score = score;
            prune.begin = 2;
            prune.end = 4;
            prune.every = 1;
            auto const train = [&](std::vector<Range> const& first,
                                   std::vector<Range> const& rest) {
                torch::manual_seed(5);
                auto const parameters = torch::zeros({layout.size});
                for (auto const& entry : layout.entries) {
                    parameters.narrow(0, entry.first, entry.count).normal_();
                }
                SliceOptimizer one(options, layout, parameters, first);
                SliceOptimizer other(options, layout, parameters, rest);
                Pruning pruning(prune, layout, parameters, first);
                Pruning elsewhere(prune, layout, parameters, rest);
                for (std::int64_t step = 0; step < 8; ++step) {
                    if (pruning.schedule().is_due(step)) {
                        // The sum over both, as two ranks would form it.
                        std::vector<double> sums;
                        elsewhere.choose(parameters, 2, [&](std::span<double> own) {
                            sums.assign(own.begin(), own.end());
                        });
                        auto const mask =
                            pruning.choose(parameters, step, [&](std::span<double> own) {
                                std::ranges::transform(own, sums, own.begin(), std::plus<>());
                            });
                        pruning.remove(mask, parameters, one);
                        elsewhere.remove(mask, parameters, other);
                    }
                    auto const gradients = torch::zeros({layout.size});
                    for (auto const& entry : layout.entries) {
                        gradients.narrow(0, entry.first, entry.count).normal_();
                    }
                    UpdateStep update{.rate = 0.01, .step = step + 1, .divisor = 3};
                    update.gather = nullptr;
                    for (auto* const each : {&pruning, &elsewhere}) {
                        each->before_update(parameters, gradients, 3, step);
                    }
                    if (rest.empty()) {
                        one.update(parameters, gradients, update);
                    } else {
                        one.update(parameters, gradients, update);
                        other.update(parameters, gradients, update);
                    }
                }
                auto const removed =
                    torch::cat({pruning.state()[0].second, elsewhere.state()[0].second});
                CHECK(removed.sum().item<std::int64_t>() > 0.69 * 31 * 5 * 170);
                for (auto const* const each : {&one, &other}) {
                    for (std::size_t i = 0; i < each->state_names().size(); ++i) {
                        auto const gone =
                            each == &one ? pruning.state()[0].second : elsewhere.state()[0].second;
                        CHECK(each->state(i).masked_select(gone).eq(0).all().item<bool>());
                    }
                }
                return std::pair{parameters, removed};
            };
            bool const is_local = rule != "lars" && rule != "lamb"; // norms are of both together
            auto const [whole, removed] = train({{0, layout.size}}, {});
            CHECK(whole.masked_select(removed).eq(0).all().item<bool>());
            CHECK(removed.sum().item<std::int64_t>() ==
                  std::llround(0.7 * static_cast<double>(155 * 170 + 170 * 33 + 33 * 10)));
            if (is_local) {
                auto const [cut, same] =
                    train({{0, 3 * reduction_block}}, {{3 * reduction_block, layout.size}});
                CHECK(torch::equal(cut, whole));
                CHECK(torch::equal(same, removed));
            }
        }
    }
}
