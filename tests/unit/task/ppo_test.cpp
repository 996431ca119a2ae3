// Policies, the probabilities of actions and the loss of PPO; golden values from
// torch.distributions and from the loss as stable-baselines3 and CleanRL have it, in float64.

#include "lockstep/nn/policy.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/task/task.hpp"
#include "task/actions.hpp"
#include "task/ppo.hpp"

#include <torch/nn/modules/rnn.h>

#include <array>
#include <map>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;

namespace {

/// Says of each observation what it holds: the distribution's parameters, then the value.
class EchoPolicy : public nn::Policy {
  public:
    nn::PolicyOutput judge(nn::PolicyInput const& input) override {
        auto const last = input.observations.size(-1) - 1;
        return {input.observations.narrow(-1, 0, last), input.observations.select(-1, last),
                input.state};
    }
};

rl::Spaces three_actions() {
    return {.observation = 4, .actions = 3, .longest_episode = 10};
}

nn::Fields fields(std::vector<torch::Tensor> tensors) {
    std::vector<nn::Field> all;
    for (auto& tensor : tensors) {
        all.push_back({std::move(tensor), {}});
    }
    return nn::Fields(std::move(all));
}

/// Two transitions; the last of them alone where `only_last`.
task::Tensors batch(std::int64_t first, std::int64_t count) {
    auto const part = [&](torch::Tensor const& whole) { return whole.narrow(0, first, count); };
    return {
        fields({part(torch::tensor({{{0.1F, -0.3F, 0.7F, 0.2F}}, {{2.0F, 0.0F, -1.0F, 0.5F}}})),
                part(torch::ones({2, 1})), part(torch::zeros({2, 0}))}),
        fields({part(torch::tensor({{{2.0F}}, {{0.0F}}})), part(torch::tensor({{-1.2F}, {-0.1F}})),
                part(torch::tensor({{1.5F}, {-0.5F}})), part(torch::tensor({{1.0F}, {-2.0F}})),
                part(torch::tensor({{0.6F}, {0.4F}}))})};
}

std::shared_ptr<nn::Model> make(std::string const& name, config::OwnKeys const& keys,
                                std::vector<std::int64_t> shape, bool continuous = false) {
    config::Model const chosen{name, keys};
    nn::Interface const interface {
        .sample_shape = std::move(shape), .outputs = 3, .continuous = continuous
    };
    auto model = nn::make_model(chosen, interface, 1);
    double parameters = 0;
    for (auto const& each : model->parameters()) {
        parameters += static_cast<double>(each.numel());
    }
    CHECK(parameters == nn::parameter_count(chosen, interface));
    return model;
}

std::map<std::string, config::OwnKeys> const policies{
    {"mlp-policy", {{"hidden", "8"}}},
    {"lstm-policy", {{"hidden", "8"}, {"units", "5"}}},
    {"clstm-policy", {{"hidden", "8"}, {"units", "5"}, {"window-units", "4"}, {"features", "6"}}}};

} // namespace

TEST_CASE("probabilities of actions are torch.distributions'") {
    auto const logits = torch::tensor({{{0.1F, -0.3F, 0.7F}}, {{2.0F, 0.0F, -1.0F}}});
    auto const few = task::action_probabilities(logits, torch::tensor({{{2.0F}}, {{0.0F}}}), false);
    CHECK(few.log_probabilities[0][0].item<double>() == Approx(-0.65060030202464));
    CHECK(few.log_probabilities[1][0].item<double>() == Approx(-0.16984601955628564));
    CHECK(few.entropy[0][0].item<double>() == Approx(1.0143346727311084));
    auto const normal = task::action_probabilities(torch::tensor({{{0.5F, -1.0F, 0.2F, -0.4F}}}),
                                                   torch::tensor({{{1.0F, -1.5F}}}), true);
    CHECK(normal.log_probabilities.item<double>() == Approx(-1.9998596882253588));
    CHECK(normal.entropy.item<double>() == Approx(2.637877066409345));
}

TEST_CASE("actions are drawn by their probabilities") {
    std::array const logits{0.0F, 1.0F, -1.0F};
    std::array<int, 3> counts{};
    std::array<float, 1> action{};
    for (std::uint64_t key = 0; key < 20000; ++key) {
        rl::Draws draws(key);
        task::choose_action(logits, false, &draws, action);
        ++counts[static_cast<std::size_t>(action[0])];
    }
    CHECK(counts[0] / 20000.0 == Approx(0.2447).margin(0.01));
    CHECK(counts[1] / 20000.0 == Approx(0.6652).margin(0.01));
    task::choose_action(logits, false, nullptr, action);
    CHECK(action[0] == 1);
    std::array const normal{0.5F, std::log(2.0F)};
    double sum = 0;
    double squares = 0;
    for (std::uint64_t key = 0; key < 20000; ++key) {
        rl::Draws draws(key);
        task::choose_action(normal, true, &draws, action);
        sum += action[0];
        squares += action[0] * action[0];
    }
    CHECK(sum / 20000 == Approx(0.5).margin(0.05));
    CHECK(squares / 20000 == Approx(4.25).margin(0.15));
}

TEST_CASE("the loss is a sum over transitions, however they are dealt") {
    EchoPolicy policy;
    auto const task = task::make_task({"ppo", "", {}}, task::Samples::of(three_actions()));
    CHECK(task->outputs() == 3);
    auto const whole = task->training_loss(policy, batch(0, 2));
    CHECK(whole.sum.item<double>() == Approx(0.37338268779248196));
    CHECK(whole.weight == 2);
    auto const names = task->figures();
    REQUIRE(static_cast<std::int64_t>(names.size()) == whole.figures.numel());
    std::map<std::string, double> figures;
    for (std::size_t i = 0; i < names.size(); ++i) {
        figures[names[i]] = whole.figures[static_cast<std::int64_t>(i)].item<double>();
    }
    CHECK(figures["policy_loss"] == Approx(-1.8 + 0.46626870068706966));
    CHECK(figures["value_loss"] == Approx(0.32 + 3.125));
    CHECK(figures["entropy"] == Approx(1.0143346727311084 + 0.5242666167276728));
    CHECK(figures["kl"] == Approx(0.18519657776385218));
    CHECK(figures["clipped"] == 1);
    auto const first = task->training_loss(policy, batch(0, 1));
    auto const second = task->training_loss(policy, batch(1, 1));
    CHECK(first.sum.item<double>() + second.sum.item<double>() == Approx(whole.sum.item<double>()));
}

TEST_CASE("a policy judges a sequence as it does its steps, and forgets where an episode begins") {
    torch::NoGradGuard const no_grad;
    for (auto const& [name, keys] : policies) {
        CAPTURE(name);
        auto const model = make(name, keys, {2, 3});
        auto& policy = dynamic_cast<nn::Policy&>(*model);
        auto const seen = torch::randn({4, 6, 2, 3});
        auto starts = torch::zeros({4, 6});
        starts.select(1, 3).fill_(1);
        starts[1][0] = 1; // and of one sequence alone
        starts[2][5] = 1;
        auto state = torch::randn({4, policy.state_size()});
        auto const whole = policy.judge({seen, starts, state});
        REQUIRE(whole.actions.sizes() == torch::IntArrayRef({4, 6, 3}));
        REQUIRE(whole.values.sizes() == torch::IntArrayRef({4, 6}));
        for (std::int64_t step = 0; step < 6; ++step) {
            auto const one =
                policy.judge({seen.narrow(1, step, 1), starts.narrow(1, step, 1), state});
            state = one.state;
            CHECK(torch::allclose(one.actions.select(1, 0), whole.actions.select(1, step), 1e-5,
                                  1e-6));
            CHECK(
                torch::allclose(one.values.select(1, 0), whole.values.select(1, step), 1e-5, 1e-6));
        }
        CHECK(torch::allclose(state, whole.state, 1e-5, 1e-6));
        auto const again = policy.judge(
            {seen.narrow(1, 3, 3), starts.narrow(1, 3, 3), torch::zeros({4, policy.state_size()})});
        CHECK(torch::allclose(again.actions, whole.actions.narrow(1, 3, 3), 1e-5, 1e-6));
        CHECK(policy.state_size() == (name == "mlp-policy" ? 0 : 20));
    }
}

TEST_CASE("a memory is torch's cell step by step, in its gradients too") {
    auto const model = make("lstm-policy", policies.at("lstm-policy"), {2, 3});
    auto& policy = dynamic_cast<nn::Policy&>(*model);
    torch::nn::LSTMCell cell(6, 5);
    auto const ours = model->named_parameters();
    {
        torch::NoGradGuard const no_grad;
        for (auto const& each : cell->named_parameters()) {
            each.value().copy_(ours["actor_memory." + each.key()]);
        }
    }
    auto const seen = torch::randn({4, 6, 2, 3});
    auto starts = torch::zeros({4, 6});
    starts[1][0] = 1;
    starts[2][4] = 1;
    auto const state = torch::randn({4, policy.state_size()});
    auto const remembered = policy.judge({seen, starts, state}).state;
    auto shown = state.narrow(1, 0, 5);
    auto kept = state.narrow(1, 5, 5);
    for (std::int64_t step = 0; step < 6; ++step) {
        auto const continues = 1 - starts.narrow(1, step, 1);
        std::tie(shown, kept) = cell->forward(seen.select(1, step).flatten(1),
                                              std::make_tuple(shown * continues, kept * continues));
    }
    auto const expected = torch::cat({shown, kept}, 1);
    CHECK(torch::allclose(remembered.narrow(1, 0, 10), expected, 1e-5, 1e-6));
    auto const direction = torch::randn({4, 10});
    (remembered.narrow(1, 0, 10) * direction).sum().backward();
    (expected * direction).sum().backward();
    for (auto const& each : cell->named_parameters()) {
        CAPTURE(each.key());
        CHECK(torch::allclose(ours["actor_memory." + each.key()].grad(), each.value().grad(), 1e-4,
                              1e-5));
    }
}

TEST_CASE("policies begin undecided, and the same from the same seed") {
    for (auto const& [name, keys] : policies) {
        CAPTURE(name);
        auto const model = make(name, keys, {2, 3}, true);
        auto const again = make(name, keys, {2, 3}, true);
        auto const inputs = torch::randn({5, 2, 3});
        auto const given = model->forward(inputs);
        CHECK(given.sizes() == torch::IntArrayRef({5, 7})); // means, deviations, value
        CHECK(given.narrow(1, 0, 3).abs().max().item<double>() < 0.1);
        CHECK(given.narrow(1, 3, 3).abs().max().item<double>() == 0);
        CHECK(torch::equal(given, again->forward(inputs)));
    }
}

TEST_CASE("task ppo without an environment says what it learns from") {
    auto const error = test::error_of([] { task::make_task({"ppo", "", {}}, task::Samples{}); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "task.environment"));
    config::Deck deck;
    deck.task.kind = "ppo";
    CHECK(task::metric_of(deck, "task.metric", "").name == "return");
}
