#include "lockstep/nn/policy.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <array>

namespace lockstep::nn {

torch::Tensor Policy::forward(Fields const& fields) {
    auto const observations = fields.only().flatten(1);
    auto const of_each = observations.narrow(1, 0, 1); // no sizes: a trace holds for any batch
    auto const output = judge({observations.unsqueeze(1), torch::ones_like(of_each),
                               torch::zeros_like(of_each).expand({-1, state_size()})});
    return torch::cat({output.actions.squeeze(1), output.values}, 1);
}

PolicyOutput judge(Policy& policy, PolicyInput const& input, std::int64_t parameters) {
    auto output = policy.judge(input);
    auto const sequences = input.starts.size(0);
    auto const steps = input.starts.size(1);
    auto const require = [](char const* what, torch::Tensor const& tensor,
                            std::vector<std::int64_t> const& shape) {
        if (!tensor.defined() || tensor.sizes() != torch::IntArrayRef(shape)) {
            throw Error(
                ExitCode::usage,
                {"the model is not a policy for this environment",
                 concat("its ", what,
                        tensor.defined() ? concat(" have shape ", sizes_text(tensor.sizes()))
                                         : std::string(" are not set"),
                        ", but must have shape ", sizes_text(shape)),
                 "Choose a policy from the list of `lockstep models`, or correct the plug-in's "
                 "judge()"});
        }
    };
    require("actions", output.actions, {sequences, steps, parameters});
    require("values", output.values, {sequences, steps});
    require("states", output.state, {sequences, policy.state_size()});
    return output;
}

} // namespace lockstep::nn
