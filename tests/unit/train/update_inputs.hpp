#pragma once

#include "arena/layout.hpp"
#include "lockstep/config/deck.hpp"

#include <torch/types.h>

#include <cstdint>
#include <string>

/// What tests of update rules give them.
namespace lockstep::train {

inline constexpr double rate = 0.01;

/// Options with a decay, and momentum where the rule has one.
inline config::Optimizer options_of(std::string const& name) {
    config::Optimizer options;
    options.name = name;
    options.weight_decay = 0.1;
    options.momentum = name == "sgd" || name == "lars" ? 0.9 : 0;
    options.nesterov = name == "sgd";
    options.trust_coefficient = 0.5;
    return options;
}

/// Gradients of a step: zeros where the arena is padded, as backward leaves them.
inline torch::Tensor gradients_of(Layout const& layout, std::int64_t step) {
    torch::manual_seed(static_cast<std::uint64_t>(step));
    auto const gradients = torch::zeros({layout.size});
    for (auto const& entry : layout.entries) {
        gradients.narrow(0, entry.first, entry.count).normal_();
    }
    return gradients;
}

} // namespace lockstep::train
