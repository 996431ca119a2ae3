#include "arena/arena.hpp"
#include "comm/partition.hpp"
#include "config/describe.hpp"
#include "lockstep/nn/registry.hpp"
#include "optimizer/entry_updates.hpp"
#include "optimizer/optimizer.hpp"
#include "optimizer/update_rules.hpp"
#include "optimizer/update_step.hpp"

#include <ATen/Parallel.h>
#include <torch/optim.h>

#include <barrier>
#include <cmath>
#include <memory>
#include <mutex>
#include <thread>

#include "catch.hpp"
#include "error_of.hpp"
#include "long_form.hpp"
#include "small_model.hpp"
#include "update_inputs.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

constexpr int steps = 20;

/// The values of a key that the deck allows.
struct Choices {
    std::string key;
    std::vector<std::string> found{};

    template <class Value>
    void operator()(char const* name, Value const& /*value*/, config::Rule const& rule,
                    char const* /*meaning*/) {
        if (name == key) {
            found = rule.choices;
        }
    }
    void own(char const* /*section*/, config::OwnKeys const& /*keys*/) {}
};

std::vector<std::string> const all_rules = [] {
    Choices rules{"optimizer.name"};
    config::Deck const deck;
    config::describe(deck, rules);
    return rules.found;
}();

using Cut = std::vector<std::vector<Range>>;

/// Whole slices, one an owner.
Cut slices(Layout const& layout, int owners) {
    comm::Partition const partition(layout.size, owners, layout.size, layout.size);
    Cut cut;
    for (int owner = 0; owner < owners; ++owner) {
        cut.push_back(partition.owned(owner));
    }
    return cut;
}

/// A shard of each bucket of five reduction blocks, of unequal sizes.
Cut shards_of_buckets(Layout const& layout, int owners) {
    Cut cut(static_cast<std::size_t>(owners));
    for (std::int64_t first = 0; first < layout.size; first += 5 * reduction_block) {
        auto const reduction_blocks =
            std::min(5 * reduction_block, layout.size - first) / reduction_block;
        for (std::int64_t owner = 0; owner < owners; ++owner) {
            Range const range{first + reduction_blocks * owner / owners * reduction_block,
                              first + reduction_blocks * (owner + 1) / owners * reduction_block};
            if (range.first < range.last) {
                cut[static_cast<std::size_t>(owner)].push_back(range);
            }
        }
    }
    return cut;
}

/// Sums of several owners that are threads of one process, for one call of each.
class SharedSums {
  public:
    explicit SharedSums(std::size_t owners) : barrier_(static_cast<std::ptrdiff_t>(owners)) {}

    void gather(std::span<double> sums) {
        {
            std::lock_guard const lock(mutex_);
            sums_.resize(sums.size(), 0);
            for (std::size_t i = 0; i < sums.size(); ++i) {
                apart_ = apart_ && (sums[i] == 0 || sums_[i] == 0);
                sums_[i] += sums[i];
            }
        }
        barrier_.arrive_and_wait();
        std::copy(sums_.begin(), sums_.end(), sums.begin());
    }
    bool apart() const { return apart_; } ///< each value came from one owner

  private:
    std::barrier<> barrier_;
    std::mutex mutex_;
    std::vector<double> sums_;
    bool apart_ = true;
};

struct Trained {
    torch::Tensor parameters;
    torch::Tensor averaged;
};

/// The arena after some steps, each owner's part updated by an optimizer of its own.
Trained trained(config::Optimizer const& options, Cut const& cut, double divisor = 1) {
    auto const model = test::small_model();
    auto const layout = Layout::of(*model);
    Arena arena(layout, torch::zeros({layout.size}));
    arena.fill_from(*model, {{0, layout.size}});
    std::vector<std::unique_ptr<SliceOptimizer>> optimizers;
    for (auto const& owned : cut) {
        optimizers.push_back(
            std::make_unique<SliceOptimizer>(options, layout, arena.parameters(), owned));
    }
    for (std::int64_t step = 1; step <= steps; ++step) {
        auto const gradients = gradients_of(layout, step) * divisor;
        SharedSums sums(cut.size());
        UpdateStep how{.rate = rate, .step = step, .divisor = divisor};
        if (cut.size() > 1) {
            how.gather = [&](std::span<double> values) { sums.gather(values); };
        }
        std::vector<std::thread> owners;
        for (auto const& optimizer : optimizers) {
            owners.emplace_back([&, threads = at::get_num_threads()] {
                at::set_num_threads(threads);
                optimizer->update(arena.parameters(), gradients, how);
            });
        }
        for (auto& owner : owners) {
            owner.join();
        }
        CHECK(sums.apart());
    }
    auto const averaged = arena.parameters().clone();
    for (auto const& optimizer : optimizers) {
        if (optimizer->averages()) {
            optimizer->write_average(averaged);
        }
    }
    return {arena.parameters().clone(), averaged};
}

Trained trained(config::Optimizer const& options) {
    return trained(options, slices(Layout::of(*test::small_model()), 1));
}

/// One entry's weights under a rule, in double and by the book: formulas as in the papers.
struct Reference {
    config::Optimizer options;
    bool exempt;
    torch::Tensor weights;
    torch::Tensor first = torch::zeros_like(weights);
    torch::Tensor second = torch::zeros_like(weights);
    torch::Tensor average = weights.clone();
    torch::Tensor start = weights.clone();

    void step(torch::Tensor const& of_loss, std::int64_t t) {
        auto const gradients = of_loss + options.proximal * (weights - start);
        if (options.name == "sgd") {
            auto const g = gradients + decay() * weights;
            first = options.momentum * first + g;
            weights = weights - rate * (options.nesterov ? g + options.momentum * first : first);
        } else if (options.name == "lars") {
            auto const both = norm(gradients) + decay() * norm(weights);
            auto const local = exempt ? 1 : options.trust_coefficient * norm(weights) / both;
            first = options.momentum * first + rate * local * (gradients + decay() * weights);
            weights = weights - first;
        } else if (options.name == "adam") {
            weights = weights - rate * adam(gradients + decay() * weights, t);
        } else if (options.name == "adamw") {
            auto const shrunk = weights - rate * decay() * weights;
            weights = shrunk - rate * adam(gradients, t);
        } else {
            auto const change = adam(gradients, t) + decay() * weights;
            auto const ratio = exempt ? 1 : norm(weights) / norm(change);
            weights = weights - rate * ratio * change;
        }
        average = options.ema * average + (1 - options.ema) * weights;
    }

  private:
    double decay() const { return exempt ? 0 : options.weight_decay; }
    static double norm(torch::Tensor const& values) { return values.norm().item<double>(); }
    torch::Tensor adam(torch::Tensor const& gradients, std::int64_t t) {
        double const beta1 = options.betas[0];
        double const beta2 = options.betas[1];
        first = beta1 * first + (1 - beta1) * gradients;
        second = beta2 * second + (1 - beta2) * gradients * gradients;
        auto const power = static_cast<double>(t);
        auto const mean = first / (1 - std::pow(beta1, power));
        auto const scale = (second / (1 - std::pow(beta2, power))).sqrt();
        return mean / (scale + options.epsilon);
    }
};

bool near(torch::Tensor const& ours, torch::Tensor const& expected) {
    return torch::allclose(ours.to(torch::kFloat64), expected, 2e-5, 2e-6);
}

} // namespace

TEST_CASE("an update has the same bits however the arena is cut, and on any number of threads") {
    auto const layout = Layout::of(*test::small_model());
    int const threads_before = at::get_num_threads();
    for (auto const& name : all_rules) {
        CAPTURE(name);
        auto options = options_of(name);
        options.ema = 0.9;
        auto const whole = trained(options, slices(layout, 1), 3);
        for (int const threads : {1, 3}) {
            at::set_num_threads(threads);
            for (int const owners : test::is_long() ? std::vector{1, 2, 3, 5} : std::vector{3}) {
                CAPTURE(threads, owners);
                for (auto const& cut :
                     {slices(layout, owners), shards_of_buckets(layout, owners)}) {
                    auto const other = trained(options, cut, 3);
                    CHECK(torch::equal(whole.parameters, other.parameters));
                    CHECK(torch::equal(whole.averaged, other.averaged));
                }
            }
        }
        at::set_num_threads(threads_before);
    }
}

TEST_CASE("each rule is that of its paper") {
    for (auto const& name : all_rules) {
        for (std::string const no_decay : {"biases, norms", "none"}) {
            CAPTURE(name, no_decay);
            auto options = options_of(name);
            options.ema = 0.8;
            options.no_decay = no_decay;
            options.proximal = no_decay == "none" ? 0.5 : 0;
            auto const ours = trained(options);
            auto const model = test::small_model();
            auto const layout = Layout::of(*model);
            for (auto const& entry : layout.entries) {
                CAPTURE(entry.name);
                bool const exempt = no_decay != "none" && entry.shape.size() < 2;
                auto const start = model->named_parameters()[entry.name].detach();
                Reference reference{options, exempt, start.to(torch::kFloat64).view(-1)};
                for (std::int64_t step = 1; step <= steps; ++step) {
                    reference.step(gradients_of(layout, step)
                                       .narrow(0, entry.first, entry.count)
                                       .to(torch::kFloat64),
                                   step);
                }
                CHECK(near(ours.parameters.narrow(0, entry.first, entry.count), reference.weights));
                CHECK(near(ours.averaged.narrow(0, entry.first, entry.count), reference.average));
            }
        }
    }
}

TEST_CASE("adamw, adam and sgd are torch's own") {
    for (std::string const name : {"adamw", "adam", "sgd"}) {
        CAPTURE(name);
        auto const ours = trained(options_of(name)).parameters;
        auto const model = test::small_model();
        auto const layout = Layout::of(*model);
        auto const group_options =
            [&](double decay) -> std::unique_ptr<torch::optim::OptimizerOptions> {
            using namespace torch::optim;
            if (name == "adamw") {
                return std::make_unique<AdamWOptions>(AdamWOptions(rate).weight_decay(decay));
            }
            if (name == "adam") {
                return std::make_unique<AdamOptions>(AdamOptions(rate).weight_decay(decay));
            }
            return std::make_unique<SGDOptions>(
                SGDOptions(rate).momentum(0.9).nesterov(true).weight_decay(decay));
        };
        std::vector<torch::optim::OptimizerParamGroup> groups;
        auto named = model->named_parameters();
        for (auto const& entry : layout.entries) {
            groups.emplace_back(std::vector{named[entry.name]},
                                group_options(entry.shape.size() < 2 ? 0 : 0.1));
        }
        std::unique_ptr<torch::optim::Optimizer> reference;
        if (name == "adamw") {
            reference = std::make_unique<torch::optim::AdamW>(groups);
        } else if (name == "adam") {
            reference = std::make_unique<torch::optim::Adam>(groups);
        } else {
            reference = std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(rate));
        }
        for (int step = 1; step <= steps; ++step) {
            auto const gradients = gradients_of(layout, step);
            for (auto const& entry : layout.entries) {
                named[entry.name].mutable_grad() =
                    gradients.narrow(0, entry.first, entry.count).view(entry.shape);
            }
            reference->step();
        }
        for (auto const& entry : layout.entries) {
            auto const mine = ours.narrow(0, entry.first, entry.count).view(entry.shape);
            CHECK(torch::allclose(mine, named[entry.name], 1e-5, 1e-6));
        }
    }
}

TEST_CASE("gradients are divided within the update") {
    auto const layout = Layout::of(*test::small_model());
    for (auto const& name : all_rules) {
        CAPTURE(name);
        auto options = options_of(name);
        options.proximal = 0.5;
        auto const plain = trained(options);
        auto const divided = trained(options, slices(layout, 1), 8); // exact
        CHECK(torch::equal(plain.parameters, divided.parameters));
    }
}

TEST_CASE("lars and lamb leave weights of norm zero a plain step") {
    for (std::string const name : {"lars", "lamb"}) {
        CAPTURE(name);
        Layout const layout{
            {{"weight", {64, 64}, 0, reduction_block}}, reduction_block, reduction_block};
        auto const parameters = torch::zeros({reduction_block});
        auto options = options_of(name);
        SliceOptimizer optimizer(options, layout, parameters, {{0, reduction_block}});
        optimizer.update(parameters, torch::full({reduction_block}, 2.0), {.rate = rate});
        // Adam's first step is the rate, a gradient's the rate times itself.
        auto const expected = name == "lamb" ? -rate : -2 * rate;
        CHECK(torch::allclose(parameters, torch::full({reduction_block}, expected)));
        optimizer.update(parameters, torch::zeros({reduction_block}), {.rate = rate, .step = 2});
        CHECK(torch::isfinite(parameters).all().item<bool>());
        auto const before = parameters.clone();
        optimizer.update(parameters, torch::ones({reduction_block}), {.rate = 0, .step = 3});
        CHECK(torch::isfinite(parameters).all().item<bool>());
        CHECK((name == "lars" || torch::equal(parameters, before)));
    }
}

TEST_CASE("what has no decay is named by kind or by pattern") {
    Layout const layout{{{"norm.weight", {8}, 0, 8},
                         {"norm.bias", {8}, 64, 8},
                         {"embedding.weight", {8, 8}, 128, 64},
                         {"table.bias", {2, 2}, 192, 4}},
                        reduction_block,
                        84};
    auto const exempt = [&](std::string const& no_decay) {
        config::Optimizer options;
        options.no_decay = no_decay;
        std::vector<bool> found;
        for (auto const& update : entry_updates(options, layout)) {
            found.push_back(update.exempt);
        }
        return found;
    };
    CHECK(exempt("biases, norms") == std::vector{true, true, false, false});
    CHECK(exempt("biases") == std::vector{false, true, false, false});
    CHECK(exempt("norms") == std::vector{true, false, false, false});
    CHECK(exempt("none") == std::vector{false, false, false, false});
    CHECK(exempt("biases, embedding.*") == std::vector{false, true, true, false});
    auto const error = test::error_of([&] { exempt("biases, embeding.*"); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "optimizer.no-decay = embeding.* matches no parameter"));
}

TEST_CASE("each value of optimizer.name has its own rule") {
    std::vector<std::string> names;
    for (auto const& kind : rule_kinds()) {
        names.emplace_back(kind.name);
    }
    CHECK(names == all_rules);
    CHECK(test::error_of([] { rule_kind("lion"); }).code() == ExitCode::software);
    CHECK(share_state("adam", "lamb"));
    CHECK_FALSE(share_state("sgd", "lars"));
}

TEST_CASE("a rule keeps the state it needs, of the owned ranges only") {
    auto const states = [](std::string const& name, double momentum, double ema) {
        config::Optimizer options;
        options.name = name;
        options.momentum = momentum;
        options.ema = ema;
        return state_names(options);
    };
    CHECK(states("adamw", 0, 0) == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
    CHECK(states("lamb", 0, 0.9) == std::vector<std::string>{"exp_avg", "exp_avg_sq", "ema"});
    CHECK(states("sgd", 0, 0).empty());
    CHECK(states("lars", 0.9, 0) == std::vector<std::string>{"momentum"});

    auto const layout = Layout::of(*test::small_model());
    auto const parameters = torch::rand({layout.size});
    auto options = options_of("sgd");
    options.ema = 0.9;
    SliceOptimizer const optimizer(
        options, layout, parameters,
        {{0, reduction_block}, {3 * reduction_block, 4 * reduction_block}});
    CHECK(optimizer.state(0).numel() == 2 * reduction_block);
    CHECK(torch::equal(optimizer.state(1),
                       torch::cat({parameters.narrow(0, 0, reduction_block),
                                   parameters.narrow(0, 3 * reduction_block, reduction_block)})));
}
