#include "nn/layer_modes.hpp"

#include <algorithm>

namespace lockstep::nn {

namespace {

void collect(torch::nn::Module& module, std::vector<std::pair<torch::nn::Module*, bool>>& modes) {
    modes.emplace_back(&module, module.is_training());
    for (auto const& child : module.children()) {
        collect(*child, modes);
    }
}

} // namespace

LayerModes::LayerModes(torch::nn::Module& module) {
    collect(module, modes_);
}

void LayerModes::restore() const {
    for (auto const& [module, training] : modes_) {
        module->train(training); // and its layers, whose turn comes later
    }
}

bool LayerModes::all_train() const {
    return std::ranges::all_of(modes_, [](auto const& mode) { return mode.second; });
}

void rest_layer(torch::nn::Module& layer) {
    std::vector<LayerModes> within;
    for (auto const& child : layer.children()) {
        within.emplace_back(*child);
    }
    layer.eval();
    for (auto const& modes : within) {
        modes.restore();
    }
}

} // namespace lockstep::nn
