#include "lockstep/nn/policy.hpp"
#include "lockstep/nn/registry.hpp"
#include "nn/evaluation_mode.hpp"
#include "nn/traced.hpp"

#include <torch/csrc/autograd/function.h>

#include <set>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;

namespace {

constexpr std::int64_t sequences = 3;
constexpr std::int64_t steps = 5;

torch::Tensor waves(std::vector<std::int64_t> const& shape, double pace) {
    std::int64_t count = 1;
    for (auto const extent : shape) {
        count *= extent;
    }
    return torch::sin(pace * torch::arange(count).to(torch::kFloat32)).reshape(shape);
}

/// Whether a part of the graph below is run again in backward.
bool runs_again(torch::autograd::Node* node, std::set<torch::autograd::Node*>& seen) {
    if (node == nullptr || !seen.insert(node).second) {
        return false;
    }
    bool found = node->name().find("Recompute") != std::string::npos;
    for (auto const& edge : node->next_edges()) {
        found = runs_again(edge.function.get(), seen) || found;
    }
    return found;
}

struct Judged {
    torch::Tensor all;       ///< what the policy gave
    torch::Tensor gradients; ///< of its parameters
    bool again = false;
};

Judged judged(config::Model const& chosen, bool recompute) {
    auto const model = std::dynamic_pointer_cast<nn::Policy>(nn::make_model(
        chosen, {.sample_shape = {4, 6}, .outputs = 2, .recompute = recompute, .continuous = true},
        3));
    auto starts = torch::zeros({sequences, steps});
    starts[1][2] = 1;
    auto const output = model->judge({waves({sequences, steps, 4, 6}, 0.7), starts,
                                      waves({sequences, model->state_size()}, 0.3)});
    auto const all = torch::cat({output.actions.flatten(), output.values.flatten()});
    std::set<torch::autograd::Node*> seen;
    Judged result{
        .all = all.detach(), .gradients = {}, .again = runs_again(all.grad_fn().get(), seen)};
    all.square().sum().backward();
    std::vector<torch::Tensor> gradients;
    for (auto const& parameter : model->parameters()) {
        gradients.push_back(parameter.grad().flatten());
    }
    result.gradients = torch::cat(gradients);
    return result;
}

std::vector<config::Model> policies() {
    return {
        {"mlp-policy", {{"hidden", "8, 8"}}},
        {"lstm-policy", {{"hidden", "8"}, {"units", "7"}}},
        {"clstm-policy",
         {{"hidden", "8"}, {"units", "7"}, {"window-units", "5"}, {"features", "9"}}},
    };
}

/// A policy of another's making, which may have taken its shapes from somewhere else.
class Foreign : public nn::Policy {
  public:
    nn::PolicyOutput output;
    nn::PolicyOutput judge(nn::PolicyInput const&) override { return output; }
};

} // namespace

TEST_CASE("a policy whose answers have other shapes than its environment needs is refused") {
    nn::PolicyInput const input{torch::zeros({sequences, steps, 4}),
                                torch::zeros({sequences, steps}), torch::zeros({sequences, 0})};
    nn::PolicyOutput const right{torch::zeros({sequences, steps, 2}),
                                 torch::zeros({sequences, steps}), torch::zeros({sequences, 0})};
    Foreign policy;
    auto const refused = [&](nn::PolicyOutput output, char const* why) {
        policy.output = std::move(output);
        auto const error = test::error_of([&] { nn::judge(policy, input, 2); });
        return error.code() == ExitCode::usage && test::says(error, why);
    };
    policy.output = right;
    CHECK_NOTHROW(nn::judge(policy, input, 2));
    CHECK(refused({torch::zeros({sequences, steps, 1}), right.values, right.state},
                  "actions have shape [3, 5, 1], but must have shape [3, 5, 2]"));
    CHECK(refused({right.actions, torch::zeros({sequences, steps, 1}), right.state},
                  "values have shape [3, 5, 1], but must have shape [3, 5]"));
    CHECK(refused({right.actions, right.values, {}}, "states are not set"));
}

TEST_CASE("policies that compute inner values again have the bits of those that keep them") {
    for (auto const& chosen : policies()) {
        CAPTURE(chosen.name);
        auto const kept = judged(chosen, false);
        auto const again = judged(chosen, true);
        CHECK_FALSE(kept.again);
        CHECK(again.again);
        CHECK(torch::equal(kept.all, again.all));
        CHECK(torch::equal(kept.gradients, again.gradients));
        CHECK(kept.gradients.abs().max().item<double>() > 0);
    }
}

TEST_CASE("a trace of a policy holds for any batch") {
    torch::NoGradGuard const no_grad;
    for (auto const& chosen : policies()) {
        CAPTURE(chosen.name);
        auto const model =
            nn::make_model(chosen, {.sample_shape = {4, 6}, .outputs = 2, .continuous = true}, 3);
        nn::EvaluationMode const evaluation(*model);
        auto script = nn::traced(*model, waves({3, 4, 6}, 0.7));
        CHECK_FALSE(nn::differing_batch(
            *model,
            [&](torch::Tensor const& inputs) { return script.forward({inputs}).toTensor(); },
            [](std::int64_t count) {
                return waves({count, 4, 6}, 0.3);
            }));
    }
}
