#include "task/distilled.hpp"

#include <torch/nn/functional/normalization.h>

#include <thread>
#include <vector>

#include "catch.hpp"
#include "echo.hpp"
#include "error_of.hpp"
#include "three_classes.hpp"

using namespace lockstep;

namespace {

constexpr double golden_kl = 0.600832525571;
constexpr double golden_mse = 1.718750000000;

/// Gives the same outputs for every batch.
class Always : public nn::Model {
  public:
    explicit Always(torch::Tensor outputs) : outputs_(std::move(outputs)) {}
    torch::Tensor forward(nn::Fields const&) override { return outputs_; }

  private:
    torch::Tensor outputs_;
};

/// Its outputs are its inputs, after two layers.
class Layers : public nn::Model {
  public:
    torch::Tensor forward(nn::Fields const& inputs) override {
        auto const& values = inputs.only();
        if (hidden_link()->states != nullptr) {
            hidden_link()->states->keep("double", values * 2);
            hidden_link()->states->keep("half", values / 2);
        }
        return values;
    }
};

torch::Tensor student() {
    return torch::tensor({{2.0F, 0.0F, -1.0F}, {0.5F, 0.25F, 3.0F}});
}

torch::Tensor teacher() {
    return torch::tensor({{1.0F, 1.0F, 0.0F}, {-2.0F, 0.0F, 4.0F}});
}

task::Lesson lesson(double weight, bool of_classes = true) {
    config::Distill options;
    options.temperature = 3;
    options.weight = weight;
    return {options, {std::make_shared<Always>(teacher())}, of_classes, {}};
}

task::Tensors taught_batch() {
    return {student(), torch::tensor({std::int64_t{0}, std::int64_t{1}})};
}

std::unique_ptr<task::Task> plain_task() {
    return task::make_task({"classification", "accuracy", {}}, test::three_classes());
}

} // namespace

TEST_CASE("the distance to a teacher is PyTorch's") {
    // 9 * F.kl_div(F.log_softmax(s / 3, 1), F.log_softmax(t / 3, 1), reduction="batchmean",
    // log_target=True) of torch 2.13; F.mse_loss(s, t)
    CHECK(task::distance_to(teacher(), student(), lesson(1)).item<double>() ==
          Approx(golden_kl).epsilon(1e-6));
    CHECK(task::distance_to(teacher(), student(), lesson(1, false)).item<double>() ==
          Approx(golden_mse).epsilon(1e-6));
    // As if each place were a sample.
    auto const places = [](torch::Tensor const& each) { return each.t().unsqueeze(0); };
    CHECK(task::distance_to(places(teacher()), places(student()), lesson(1)).item<double>() ==
          Approx(golden_kl).epsilon(1e-6));
    CHECK(task::distance_to(teacher().narrow(0, 0, 0), student().narrow(0, 0, 0), lesson(1))
              .item<double>() == 0);
}

TEST_CASE("targets and teacher share the loss as the weight says") {
    test::Echo model;
    auto const plain = plain_task()->training_loss(model, taught_batch());
    for (double const weight : {0.0, 0.25, 1.0}) {
        auto const taught =
            task::distilled(plain_task(), lesson(weight))->training_loss(model, taught_batch());
        CHECK(taught.sum.item<double>() ==
              Approx((1 - weight) * plain.sum.item<double>() + weight * 2 * golden_kl));
        CHECK(taught.weight == plain.weight);
        CHECK(taught.counts.equal(plain.counts));
        CHECK(taught.figures[0].item<double>() == Approx(plain.sum.item<double>()));
        CHECK(taught.figures[1].item<double>() == Approx(2 * golden_kl));
    }
    CHECK(task::distilled(plain_task(), lesson(0.5))->figures() ==
          std::vector<std::string>{"target_loss", "teacher_loss"});
}

TEST_CASE("the distances between hidden layers are added to the loss") {
    auto taught = lesson(0.5);
    taught.options.hidden_weight = 3;
    taught.hidden = {{"double", "half"}, {"double", "double"}};
    taught.teachers = {std::make_shared<Layers>()};
    auto without = lesson(0.5);
    without.teachers = taught.teachers;
    auto inputs = student();
    inputs.requires_grad_();
    Layers model;
    task::Tensors const batch{inputs, taught_batch().targets};
    auto const task = task::distilled(plain_task(), taught);
    auto const loss = task->training_loss(model, batch);
    auto const rest = task::distilled(plain_task(), without)->training_loss(model, batch);
    // Of two samples: the mean square of 2 x - x / 2, and 0.
    auto const distance = 2 * (inputs * 1.5).pow(2).mean().item<double>();
    CHECK(loss.figures[2].item<double>() == Approx(distance));
    CHECK(loss.sum.item<double>() == Approx(rest.sum.item<double>() + 3 * distance));
    CHECK(task->figures() ==
          std::vector<std::string>{"target_loss", "teacher_loss", "hidden_loss"});
    (loss.sum - rest.sum).backward();
    CHECK(inputs.grad().abs().sum().item<double>() > 0);
    Layers other;
    auto const refusal = [&](config::HiddenPair const& pair) {
        return test::error_of(
                   [&] { task::require_hidden(model, other, nn::Fields(student()), {pair}); })
            .text();
    };
    CHECK(refusal({"none", "half"}).what == "distill.hidden: the model has no layer none");
    CHECK(refusal({"half", "none"}).why == "its layers are double, half");
    task::require_hidden(model, other, nn::Fields(student()), taught.hidden);
}

TEST_CASE("a teacher's outputs that come with the batch teach as the teacher does") {
    auto recorded = lesson(0.25);
    recorded.teachers.clear();
    recorded.recorded = true;
    auto const task = task::distilled(plain_task(), recorded);
    auto const batch = taught_batch();
    auto const with = [&](torch::Tensor outputs) {
        return task::Tensors{batch.inputs,
                             nn::Fields({batch.targets[0], nn::Field{std::move(outputs), {}}})};
    };
    test::Echo model;
    auto const live = task::distilled(plain_task(), lesson(0.25))->training_loss(model, batch);
    auto const loss = task->training_loss(model, with(teacher()));
    CHECK(loss.sum.item<double>() == live.sum.item<double>());
    CHECK(loss.figures.equal(live.figures));
    CHECK(loss.counts.equal(live.counts));
    CHECK(task->evaluate(model, batch).loss_sum ==
          plain_task()->evaluate(model, batch).loss_sum); // whose batches have no outputs
    CHECK(test::error_of([&] {
              task->training_loss(model, with(torch::zeros({2, 4})));
          }).code() == ExitCode::usage);
}

TEST_CASE("no gradient reaches a teacher") {
    auto outputs = teacher();
    outputs.requires_grad_();
    auto taught = lesson(1);
    taught.teachers = {std::make_shared<Always>(outputs * 1)};
    auto inputs = student();
    inputs.requires_grad_();
    test::Echo model;
    auto loss = task::distilled(plain_task(), taught)
                    ->training_loss(model, {inputs, taught_batch().targets});
    loss.sum.backward();
    CHECK(inputs.grad().abs().sum().item<double>() > 0);
    CHECK_FALSE(outputs.grad().defined());
}

TEST_CASE("threads share teachers, and a teacher of other outputs is refused") {
    auto const task = task::distilled(plain_task(), lesson(0.5));
    std::vector<double> losses(4);
    std::vector<std::thread> threads;
    for (auto& loss : losses) {
        threads.emplace_back([&] {
            for (int i = 0; i < 50; ++i) {
                test::Echo model;
                loss = task->training_loss(model, taught_batch()).sum.item<double>();
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(losses == std::vector<double>(4, losses.front()));
    auto wrong = lesson(0.5);
    wrong.teachers = {std::make_shared<Always>(torch::zeros({2, 4}))};
    test::Echo model;
    CHECK(test::error_of([&] {
              task::distilled(plain_task(), wrong)->training_loss(model, taught_batch());
          }).code() == ExitCode::usage);
}

TEST_CASE("hidden layers of one shape are compared by squares, others by maps") {
    torch::manual_seed(1);
    auto const wide = torch::rand({2, 3, 2, 2});
    auto const narrow = torch::rand({2, 2, 2, 2});
    config::HiddenPair const pair{"a", "b"};
    CHECK(task::hidden_distance(wide, wide + 0.5, pair).item<double>() == Approx(0.25));
    auto const map = [](torch::Tensor const& outputs) {
        return torch::nn::functional::normalize(outputs.pow(2).mean(1).flatten(1));
    };
    auto const expected = (map(wide) - map(narrow)).pow(2).sum() / 2;
    CHECK(task::hidden_distance(wide, narrow, pair).item<double>() ==
          Approx(expected.item<double>()));
    // The width may be any extent but the first.
    CHECK(task::hidden_distance(wide.permute({0, 2, 3, 1}), narrow.permute({0, 2, 3, 1}), pair)
              .item<double>() == Approx(expected.item<double>()));
    CHECK(
        task::hidden_distance(wide.narrow(0, 0, 0), narrow.narrow(0, 0, 0), pair).item<double>() ==
        0);
    // Two extents differ, or the number of dimensions, or that of samples.
    for (auto const& other :
         {torch::rand({2, 3, 2, 4}), torch::rand({2, 8}), torch::rand({3, 3, 2, 2})}) {
        CHECK(test::error_of([&] { task::hidden_distance(other, narrow, pair); }).code() ==
              ExitCode::usage);
    }
    CHECK(test::error_of([&] {
              task::hidden_distance(wide.flatten(1), narrow.flatten(1), pair);
          }).code() == ExitCode::usage);
}

TEST_CASE("some tasks have no outputs that a teacher could show") {
    CHECK(task::learns_classes("classification"));
    CHECK_FALSE(task::learns_classes("regression"));
    CHECK(test::error_of([] { task::learns_classes("ctc"); }).code() == ExitCode::usage);
    CHECK(test::error_of([] { task::learns_classes("ctc", "--outputs"); }).text().what ==
          "--outputs cannot be combined with task.kind = ctc");
}

TEST_CASE("a teacher gets the inputs as they were, also where the model changes its own in place") {
    class Doubles : public nn::Model {
      public:
        torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only().mul_(2); }
    };
    auto given = lesson(1);
    given.teachers = {std::make_shared<Layers>()}; // gives its inputs
    auto expected = lesson(1);
    expected.teachers = {std::make_shared<Always>(student())};
    Doubles model;
    auto const loss_of = [&](task::Lesson const& with) {
        return task::distilled(plain_task(), with)
            ->training_loss(model, taught_batch())
            .sum.item<double>();
    };
    CHECK(loss_of(given) == loss_of(expected));
}

TEST_CASE("a teacher gets inputs as they were normalised for it, number by number or by channel") {
    auto given = lesson(1);
    given.teachers = {std::make_shared<Layers>()}; // gives its inputs
    auto expected = lesson(1);
    auto const same = [&](torch::Tensor const& outputs) {
        expected.teachers = {std::make_shared<Always>(outputs)};
        auto const loss = [](task::Lesson const& taught) {
            test::Echo echo;
            return task::distilled(plain_task(), taught)
                ->training_loss(echo, taught_batch())
                .sum.item<double>();
        };
        return loss(given) == loss(expected);
    };
    given.rescaling = {{2}, {0.5}};
    CHECK(same(student() * 2 + 0.5));
    given.rescaling = {{2, 1, 0.25}, {0, 1, -3}};
    CHECK(
        same(student() * torch::tensor({2.0F, 1.0F, 0.25F}) + torch::tensor({0.0F, 1.0F, -3.0F})));
}

TEST_CASE("channels of a teacher's inputs may be their last dimension") {
    auto const pictures = torch::arange(16, torch::kFloat32).view({1, 4, 2, 2}); // of 2 channels
    class Keeps : public nn::Model {
      public:
        torch::Tensor forward(nn::Fields const& inputs) override {
            seen = inputs.only();
            return teacher().slice(0, 0, 1);
        }
        torch::Tensor seen;
    };
    class Scores : public nn::Model {
      public:
        torch::Tensor forward(nn::Fields const&) override { return student().slice(0, 0, 1); }
    };
    auto given = lesson(1);
    auto const keeps = std::make_shared<Keeps>();
    given.teachers = {keeps};
    given.rescaling = {{2, 3}, {0, 1}};
    Scores model;
    task::distilled(plain_task(), given)
        ->training_loss(model, {pictures, torch::zeros({1}, torch::kInt64)});
    CHECK(keeps->seen.equal(pictures * torch::tensor({2.0F, 3.0F}) + torch::tensor({0.0F, 1.0F})));
}
