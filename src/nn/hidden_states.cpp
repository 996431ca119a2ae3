#include "lockstep/nn/hidden_states.hpp"

#include "base/text.hpp"
#include "nn/run_layers.hpp"

#include <algorithm>

namespace lockstep::nn {

void HiddenStates::keep(std::string const& name, torch::Tensor const& outputs) {
    layers_.push_back(name);
    if (std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end()) {
        outputs_[name] = outputs.clone(); // later operators may work in place
    }
}

std::vector<torch::Tensor> HiddenStates::outputs() const {
    std::vector<torch::Tensor> kept;
    for (auto const& name : wanted_) {
        auto const found = outputs_.find(name);
        kept.push_back(found == outputs_.end() ? torch::Tensor() : found->second);
    }
    return kept;
}

torch::Tensor forward_kept(torch::nn::Sequential& sequence, char const* prefix,
                           HiddenLink const& link, torch::Tensor const& input) {
    if (link.states == nullptr) {
        return run_layers(std::span(sequence->begin(), sequence->end()), input);
    }
    auto const names = sequence->named_children().keys();
    auto outputs = input;
    for (std::size_t at = 0; at < sequence->size(); ++at) {
        outputs = (sequence->begin() + static_cast<std::ptrdiff_t>(at))->forward(outputs);
        link.states->keep(concat(prefix, ".", names[at]), outputs);
    }
    return outputs;
}

} // namespace lockstep::nn
