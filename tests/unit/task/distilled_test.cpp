#include "task/distilled.hpp"

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
    return {options, {std::make_shared<Always>(teacher())}, of_classes};
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

TEST_CASE("some tasks have no outputs that a teacher could show") {
    CHECK(task::learns_classes("classification"));
    CHECK_FALSE(task::learns_classes("regression"));
    CHECK(test::error_of([] { task::learns_classes("ctc"); }).code() == ExitCode::usage);
}
