#include "optimizer/optimizer.hpp"

#include "arena/block_squares.hpp"
#include "arena/parallel_parts.hpp"
#include "base/text.hpp"
#include "comm/replica_tree.hpp"
#include "lockstep/base/error.hpp"
#include "optimizer/update_rules.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shard.hpp"
#include "update_step.hpp"

namespace lockstep::train {

namespace {

constexpr char const* first_name = "first";
constexpr char const* average_name = "ema";
constexpr double largest_divisor = std::numeric_limits<float>::max(); ///< the kernels' type

} // namespace

std::vector<std::string> state_names(config::Optimizer const& options) {
    auto names = rule_kind(options.name).state_names(options);
    if (options.proximal > 0) {
        names.emplace_back(first_name);
    }
    if (options.ema > 0) {
        names.emplace_back(average_name); // the last one
    }
    return names;
}

bool share_state(std::string const& name, std::string const& other) {
    return rule_kind(name).state == rule_kind(other).state;
}

template <class Action>
void SliceOptimizer::for_each_owned(Action const& action) const {
    std::int64_t own = 0;
    for (auto const [first, last] : owned_) {
        action(first, own, last - first);
        own += last - first;
    }
}

SliceOptimizer::SliceOptimizer(config::Optimizer const& options, Layout const& layout,
                               torch::Tensor const& parameters, std::vector<Range> owned)
    : options_(options), owned_(std::move(owned)), names_(train::state_names(options)) {
    std::int64_t count = 0;
    for (auto const range : owned_) {
        count += range.last - range.first;
    }
    for (std::size_t i = 0; i < names_.size(); ++i) {
        states_.push_back(torch::zeros(
            {count}, torch::TensorOptions(torch::kFloat32).device(parameters.device())));
    }
    make_rule(layout, std::vector<std::int64_t>(layout.entries.size(), 0));
    for (std::size_t which = 0; which < names_.size(); ++which) {
        if (copies_weights(which)) {
            begin_copy(which, parameters);
        }
    }
}

void SliceOptimizer::make_rule(Layout const& layout, std::vector<std::int64_t> const& begun_after) {
    auto shards = owned_shards(options_, layout, owned_);
    for (auto& shard : shards) {
        shard.begun_after = begun_after[shard.entry];
    }
    rule_ = rule_kind(options_.name).make(options_, layout, shards);
}

void SliceOptimizer::begin_later(Layout const& layout, std::vector<std::size_t> const& entries,
                                 std::int64_t steps) {
    std::vector<std::int64_t> begun_after(layout.entries.size(), 0);
    for (auto const entry : entries) {
        begun_after[entry] = steps;
    }
    make_rule(layout, begun_after);
}

SliceOptimizer::~SliceOptimizer() = default;
SliceOptimizer::SliceOptimizer(SliceOptimizer&&) noexcept = default;

void SliceOptimizer::update(torch::Tensor const& parameters, torch::Tensor const& gradients,
                            UpdateStep const& step) {
    torch::NoGradGuard const no_grad;
    if (options_.proximal > 0) {
        pull_to_first(parameters, gradients, step.divisor);
    }
    auto clipped = step;
    if (options_.clip_norm > 0) {
        auto const norm = options_.proximal > 0 ? norm_of(gradients, step) : step.norm;
        if (norm > options_.clip_norm) {
            clipped.divisor =
                std::min(clipped.divisor * ((norm + 1e-6) / options_.clip_norm), largest_divisor);
        }
    }
    if (correction_.defined()) { // unclipped, so that over all sites it adds up to nothing
        for_each_owned([&](std::int64_t first, std::int64_t own, std::int64_t size) {
            gradients.narrow(0, first, size)
                .add_(correction_.narrow(0, own, size), clipped.divisor);
        });
    }
    rule_->update({parameters, gradients, states_}, clipped);
    if (averages()) {
        update_average(parameters);
    }
}

void SliceOptimizer::set_correction(torch::Tensor const& correction) {
    std::vector<torch::Tensor> parts{correction.narrow(0, 0, 0)}; // a rank may own nothing
    for_each_owned([&](std::int64_t first, std::int64_t /*own*/, std::int64_t size) {
        parts.push_back(correction.narrow(0, first, size));
    });
    correction_ = torch::cat(parts);
}

void SliceOptimizer::update_average(torch::Tensor const& parameters) {
    parallel_parts(parameters.device(), [&](std::int64_t part, std::int64_t parts) {
        for_each_owned([&](std::int64_t first, std::int64_t own, std::int64_t size) {
            auto const [begin, end] = part_of(size, part, parts);
            auto const weights = parameters.narrow(0, first + begin, end - begin);
            average().narrow(0, own + begin, end - begin).lerp_(weights, 1 - options_.ema);
        });
    });
}

/// The proximal term of FedProx (Li et al., arXiv 1812.06127). Gradients are sums: what is added is
/// multiplied by what the rule divides them by.
void SliceOptimizer::pull_to_first(torch::Tensor const& parameters, torch::Tensor const& gradients,
                                   double divisor) const {
    auto const found = std::find(names_.begin(), names_.end(), first_name);
    auto const& firsts = states_[static_cast<std::size_t>(found - names_.begin())];
    for_each_owned([&](std::int64_t first, std::int64_t own, std::int64_t size) {
        auto const away = parameters.narrow(0, first, size) - firsts.narrow(0, own, size);
        gradients.narrow(0, first, size).add_(away, options_.proximal * divisor);
    });
}

/// The norm of the divided gradients of all ranks.
double SliceOptimizer::norm_of(torch::Tensor const& gradients, UpdateStep const& step) const {
    std::vector<double> squares(static_cast<std::size_t>(gradients.numel() / reduction_block), 0);
    for_each_owned([&](std::int64_t first, std::int64_t /*own*/, std::int64_t size) {
        auto const own = squares_of_blocks(gradients.narrow(0, first, size)).cpu();
        std::copy_n(own.const_data_ptr<double>(), own.numel(),
                    squares.begin() + first / reduction_block);
    });
    if (step.gather) {
        step.gather(squares);
    }
    return std::sqrt(comm::tree_sum(squares)) / step.divisor;
}

bool SliceOptimizer::copies_weights(std::size_t which) const {
    return names_[which] == average_name || names_[which] == first_name;
}

void SliceOptimizer::begin_copy(std::size_t which, torch::Tensor const& parameters) const {
    torch::NoGradGuard const no_grad;
    for_each_owned([&](std::int64_t first, std::int64_t own, std::int64_t size) {
        states_[which].narrow(0, own, size).copy_(parameters.narrow(0, first, size));
    });
}

void SliceOptimizer::write_average(torch::Tensor const& parameters) const {
    torch::NoGradGuard const no_grad;
    for_each_owned([&](std::int64_t first, std::int64_t own, std::int64_t size) {
        parameters.narrow(0, first, size).copy_(average().narrow(0, own, size));
    });
}

} // namespace lockstep::train
