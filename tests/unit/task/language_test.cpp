// What counts in the loss of a language model: not what follows a document, and not what a mask
// leaves out.

#include "lockstep/task/task.hpp"
#include "task/distilled.hpp"

#include <torch/nn/functional/loss.h>

#include "catch.hpp"

using namespace lockstep;

namespace {

constexpr std::int64_t vocabulary = 5; // the last token ends a document

/// Gives scores that do not depend on the tokens.
class FixedScores : public nn::Model {
  public:
    explicit FixedScores(torch::Tensor scores) : scores_(std::move(scores)) {}
    torch::Tensor forward(nn::Fields const& inputs) override {
        return scores_.narrow(0, 0, inputs.samples());
    }

  private:
    torch::Tensor scores_;
};

/// Shape  [2, vocabulary, 4]
torch::Tensor scores(double shift) {
    return (torch::arange(2 * vocabulary * 4, torch::kFloat32) + shift)
        .sin()
        .reshape({2, vocabulary, 4});
}

torch::Tensor numbers(std::vector<std::int64_t> const& values) {
    return torch::tensor(values).reshape({-1, 4});
}

std::unique_ptr<task::Task> language(bool masked, config::OwnKeys const& keys = {}) {
    data::FieldInfo const tokens{.name = "inputs",
                                 .type = h5::Type::u16,
                                 .shape = {4},
                                 .whole = true,
                                 .vocabulary = vocabulary,
                                 .end_of_text = 4};
    data::FieldInfo const mask{.name = "learnt", .type = h5::Type::u8, .shape = {4}, .whole = true};
    task::Samples samples{.inputs = {tokens}, .targets = {tokens}, .token_bytes = {1, 2, 3, 4, 0}};
    if (masked) {
        samples.targets.push_back(mask);
        samples.masked = true;
    }
    return task::make_task({"language", "", keys}, samples);
}

/// Nothing of the second sample is learnt.
task::Tensors masked_batch() {
    return {numbers({0, 1, 4, 2, 3, 0, 1, 2}),
            nn::Fields(std::vector<nn::Field>{{numbers({1, 4, 2, 3, 0, 1, 2, 3}), {}},
                                              {numbers({0, 1, 1, 1, 0, 0, 0, 0}), {}}})};
}

torch::Tensor labels_that_count() {
    return numbers({-100, 4, -100, 3, -100, -100, -100, -100});
}

} // namespace

TEST_CASE("a language model learns the tokens that its mask marks") {
    for (double const smoothing : {0.0, 0.1}) {
        auto const task = language(true, {{"label-smoothing", smoothing == 0 ? "0" : "0.1"}});
        auto logits = scores(0).requires_grad_();
        FixedScores model(logits);
        auto const loss = task->training_loss(model, masked_batch());
        auto const wanted =
            torch::nn::functional::cross_entropy(logits, labels_that_count(),
                                                 torch::nn::functional::CrossEntropyFuncOptions()
                                                     .ignore_index(-100)
                                                     .reduction(torch::kSum)
                                                     .label_smoothing(smoothing));
        CHECK(loss.sum.item<double>() == Approx(wanted.item<double>()).epsilon(1e-6));
        CHECK(loss.weight == 2);
        loss.sum.backward();
        CHECK(logits.grad()[0].select(1, 1).abs().sum().item<double>() > 0);
        CHECK(logits.grad()[0].select(1, 2).abs().sum().item<double>() == 0); // after a document
        CHECK(logits.grad()[1].abs().sum().item<double>() == 0);
    }
    FixedScores model(scores(0));
    auto const log_probabilities = torch::log_softmax(scores(0), 1)[0];
    auto const tally = language(true)->evaluate(model, masked_batch());
    CHECK(tally.loss_sum ==
          Approx(-(log_probabilities[4][1] + log_probabilities[3][3]).item<double>()));
    CHECK(tally.weight == 2);
    CHECK(tally.counts[1] == 4); // bytes: the end of a document has none
    CHECK(language(false)
              ->training_loss(model, {masked_batch().inputs, masked_batch().targets.only()})
              .weight == 7);
}

TEST_CASE("a sample of which nothing is learnt weighs nothing") {
    FixedScores model(scores(0));
    auto const batch = masked_batch();
    task::Tensors const second{batch.inputs.sample(1), batch.targets.sample(1)};
    auto const loss = language(true)->training_loss(model, second);
    CHECK(loss.sum.item<double>() == 0);
    CHECK(loss.weight == 0);
    auto const tally = language(true)->evaluate(model, second);
    CHECK(tally.loss_sum == 0);
    CHECK(tally.weight == 0);
}

TEST_CASE("a teacher is followed only where the targets are learnt") {
    config::Distill options;
    options.temperature = 2;
    options.weight = 1;
    task::Lesson const lesson{options, {std::make_shared<FixedScores>(scores(0.5))}};
    FixedScores model(scores(0));
    auto const loss = task::distilled(language(true), lesson)->training_loss(model, masked_batch());
    // The two places that count, as if each were a sample.
    auto const places = [](torch::Tensor const& all) {
        return torch::stack({all[0].select(1, 1), all[0].select(1, 3)});
    };
    auto const wanted = task::distance_to(places(scores(0.5)), places(scores(0)), lesson);
    CHECK(loss.sum.item<double>() == Approx(2 * wanted.item<double>()).epsilon(1e-6));
    auto const batch = masked_batch();
    CHECK(task::distilled(language(true), lesson)
              ->training_loss(model, {batch.inputs.sample(1), batch.targets.sample(1)})
              .sum.item<double>() == 0);
    CHECK_FALSE(language(false, {{"documents", "joined"}})->counted(batch).defined());
}
