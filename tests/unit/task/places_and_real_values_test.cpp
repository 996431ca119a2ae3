// Regression and segmentation, against figures worked out by hand.

#include "lockstep/task/task.hpp"

#include <cmath>

#include "catch.hpp"
#include "echo.hpp"
#include "error_of.hpp"
#include "three_classes.hpp"

using namespace lockstep;

namespace {

task::Samples of_real_values(std::uint64_t real_values) {
    auto samples = test::three_classes();
    samples.targets = {{.name = "targets", .type = h5::Type::f32, .shape = {real_values}}};
    samples.class_names = {};
    return samples;
}

task::Samples of_places() {
    auto samples = test::three_classes();
    samples.targets = {{.name = "targets", .type = h5::Type::i64, .shape = {2, 2}, .whole = true}};
    return samples;
}

} // namespace

TEST_CASE("a regression's errors are told of each value and over all") {
    test::Echo model;
    auto const task = task::make_task({"regression", "", {}}, of_real_values(2));
    CHECK(task->outputs() == 2);
    task::Tensors const batch{torch::tensor({{1.0F, 2.0F}, {0.0F, -1.0F}}),
                              torch::tensor({{0.0F, 2.0F}, {0.5F, 2.0F}})};
    auto const loss = task->training_loss(model, batch);
    CHECK(loss.sum.item<double>() == Approx(1 + 0.25 + 9));
    CHECK(loss.weight == 4);
    auto const metrics = task->metrics(task->evaluate(model, batch));
    CHECK(metrics.at("mae.0") == Approx(0.75));
    CHECK(metrics.at("mae.1") == Approx(1.5));
    CHECK(metrics.at("mae") == Approx(4.5 / 4));
    CHECK(metrics.at("rmse") == Approx(std::sqrt(10.25 / 4)));
}

TEST_CASE("a regression takes other losses, and no others than it names") {
    test::Echo model;
    task::Tensors const batch{torch::tensor({{3.0F}, {0.5F}}), torch::tensor({{0.0F}, {0.0F}})};
    auto const sum = [&](std::string const& loss) {
        return task::make_task({"regression", "", {{"loss", loss}}}, of_real_values(1))
            ->training_loss(model, batch)
            .sum.item<double>();
    };
    CHECK(sum("mae") == Approx(3.5));
    CHECK(sum("huber") == Approx(2.5 + 0.125));
    CHECK(test::error_of([&] { sum("mes"); }).code() == ExitCode::usage);
}

TEST_CASE("a regression that normalises its targets learns them so, and tells their own units") {
    test::Echo model;
    auto samples = of_real_values(2);
    samples.metrics = {"r2"};
    auto const plain = task::make_task({"regression", "", {}}, samples);
    samples.target_mean = {1e6, -2};
    samples.target_std = {4, 0.5};
    auto const task = task::make_task({"regression", "", {}}, samples);
    auto const outputs = torch::tensor({{1.0F, 2.0F}, {0.0F, -1.0F}});
    // Normalised [[0.5, 3], [-1, 0]].
    auto const targets = torch::tensor({{1000002.0F, -0.5F}, {999996.0F, -2.0F}});
    task::Tensors const batch{outputs, targets};
    auto const loss = task->training_loss(model, batch);
    CHECK(loss.sum.dtype() == torch::kFloat32);
    CHECK(loss.sum.item<double>() == Approx(0.25 + 1 + 1 + 1));
    auto const tally = task->evaluate(model, batch);
    CHECK(tally.loss_sum == Approx(0.25 + 1 + 1 + 1));
    // Predictions [[1000004, -1], [1000000, -2.5]].
    auto const metrics = task->metrics(tally);
    CHECK(metrics.at("mae.0") == Approx(3));
    CHECK(metrics.at("mae.1") == Approx(0.5));
    CHECK(metrics.at("rmse") == Approx(std::sqrt((4 + 16 + 0.25 + 0.25) / 4)));
    auto const given = task->predict(model, nn::Fields(outputs)).numbers;
    auto const own = torch::tensor({{1000004.0F, -1.0F}, {1000000.0F, -2.5F}});
    CHECK(torch::equal(given, own));
    // As a model that returns those values tells of itself.
    auto const same = plain->metrics(plain->evaluate(model, {own, targets}));
    for (auto const& [name, value] : same) {
        CAPTURE(name);
        CHECK(metrics.at(name) == Approx(value));
    }
    // One mean and deviation for all values of a sample.
    samples.target_mean = {3};
    samples.target_std = {2};
    auto const of_all = task::make_task({"regression", "", {}}, samples);
    CHECK(torch::equal(of_all->predict(model, nn::Fields(outputs)).numbers, outputs * 2 + 3));
}

TEST_CASE("a segmentation's IoU is that of the classes over all places") {
    test::Echo model;
    auto const task = task::make_task({"segmentation", "", {}}, of_places());
    CHECK(task->outputs() == 3);
    auto const truth = torch::tensor({0, 0, 1, 2}, torch::kInt64).reshape({1, 2, 2});
    auto const guess = torch::tensor({0, 1, 1, 1}, torch::kInt64).reshape({1, 2, 2});
    auto const logits = 5 * torch::one_hot(guess, 3).permute({0, 3, 1, 2}).to(torch::kFloat32);
    auto const tally = task->evaluate(model, {logits, truth});
    CHECK(tally.weight == 4);
    auto const metrics = task->metrics(tally);
    // Class 0: 1 of 2; class 1: 1 of 3; class 2: 0 of 1.
    CHECK(metrics.at("iou.a") == Approx(0.5));
    CHECK(metrics.at("iou.b") == Approx(1.0 / 3));
    CHECK(metrics.at("iou") == Approx((0.5 + 1.0 / 3) / 3));
    CHECK(metrics.at("accuracy") == Approx(0.5));
    // Classes that a file keeps as real values are classes too.
    CHECK(task->evaluate(model, {logits, truth.to(torch::kFloat32)}).counts == tally.counts);
    CHECK(test::error_of([&] {
              task->evaluate(model, {logits, truth + 1});
          }).code() == ExitCode::data);
    CHECK(test::error_of([&] {
              task->training_loss(model, {logits[0], truth});
          }).code() == ExitCode::usage);
}

TEST_CASE("weights of a segmentation's classes are a list") {
    test::Echo model;
    auto const weighted =
        task::make_task({"segmentation", "", {{"class-weights", "1, 2, 4"}}}, of_places());
    auto const truth = torch::tensor({0, 0, 1, 2}, torch::kInt64).reshape({1, 2, 2});
    auto const loss = weighted->training_loss(model, {torch::zeros({1, 3, 2, 2}), truth});
    CHECK(loss.weight == Approx(8));
    CHECK(loss.sum.item<double>() == Approx(8 * std::log(3)));
    CHECK(test::error_of([&] {
              task::make_task({"segmentation", "", {{"class-weights", "balanced"}}}, of_places());
          }).code() == ExitCode::usage);
}

TEST_CASE("a place's class is a whole number, in whatever type it is kept") {
    test::Echo model;
    auto const task = task::make_task({"segmentation", "", {}}, of_places());
    CHECK(task->classes_of_places() == 3);
    auto const logits = torch::rand({1, 3, 1, 2});
    auto const loss = [&](torch::Tensor const& truth) {
        return task->training_loss(model, {logits, truth}).sum.item<double>();
    };
    CHECK(loss(torch::tensor({{{1.0F, 2.0F}}})) == loss(torch::tensor({{{1, 2}}}, torch::kInt64)));
    for (float const wrong : {1.5F, -1.0F, 3.0F, NAN, 1e20F}) {
        CAPTURE(wrong);
        auto const error = test::error_of([&] { loss(torch::tensor({{{1.0F, wrong}}})); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "labels of 3 classes must be whole numbers from 0 to 2"));
    }
}

TEST_CASE("the Dice loss is a mean over the classes of each sample") {
    test::Echo model;
    auto const task = task::make_task({"segmentation", "", {{"loss", "dice"}}}, of_places());
    auto const both = task::make_task({"segmentation", "", {{"loss", "both"}}}, of_places());
    auto const truth = torch::tensor({0, 0, 1, 2, 1, 1, 1, 1}, torch::kInt64).reshape({2, 2, 2});
    auto const logits = torch::randn({2, 3, 2, 2});
    auto const shares = torch::softmax(logits.to(torch::kFloat64), 1);
    double dice = 0;
    double cross_entropy = 0; // the mean over the places of a sample
    for (std::int64_t n = 0; n < 2; ++n) {
        for (std::int64_t c = 0; c < 3; ++c) {
            double hit = 0;
            double sizes = 0;
            for (std::int64_t place = 0; place < 4; ++place) {
                auto const share = shares[n][c].flatten()[place].item<double>();
                bool const here = truth[n].flatten()[place].item<std::int64_t>() == c;
                hit += here ? share : 0;
                sizes += share + (here ? 1 : 0);
                cross_entropy -= here ? std::log(share) / 4 : 0;
            }
            dice += (1 - (2 * hit + 1e-5) / (sizes + 1e-5)) / 3;
        }
    }
    auto const loss = task->training_loss(model, {logits, truth});
    CHECK(loss.weight == 2);
    CHECK(loss.sum.item<double>() == Approx(dice).epsilon(1e-6));
    CHECK(task->evaluate(model, {logits, truth}).loss_sum == Approx(dice).epsilon(1e-6));
    CHECK(both->training_loss(model, {logits, truth}).sum.item<double>() ==
          Approx(dice + cross_entropy).epsilon(1e-6));
    CHECK(test::error_of([&] {
              task::make_task(
                  {"segmentation", "", {{"loss", "dice"}, {"class-weights", "1, 1, 2"}}},
                  of_places());
          }).code() == ExitCode::usage);
}

TEST_CASE("positions of the label to ignore count nowhere") {
    test::Echo model;
    auto const logits = torch::randn({1, 3, 2, 2});
    auto const truth = torch::tensor({0, 255, 1, 2}, torch::kInt64).reshape({1, 2, 2});
    auto const counted = torch::tensor({0, 2, 3}, torch::kInt64);
    // The same places alone, as a picture of one row.
    task::Tensors const rest{logits.flatten(2).index_select(2, counted).unsqueeze(2),
                             truth.flatten(1).index_select(1, counted).unsqueeze(1)};
    for (std::string const loss : {"cross-entropy", "dice", "both"}) {
        CAPTURE(loss);
        auto samples = of_places();
        samples.metrics = {"confusion"};
        auto const all = task::make_task({"segmentation", "", {{"loss", loss}}}, samples);
        auto const task = task::make_task(
            {"segmentation", "", {{"loss", loss}, {"ignore-label", "255"}}}, samples);
        CHECK(task->ignored_class() == 255);
        auto const expected = all->training_loss(model, rest);
        auto const got = task->training_loss(model, {logits, truth});
        CHECK(got.weight == expected.weight);
        CHECK(got.sum.item<double>() == Approx(expected.sum.item<double>()).epsilon(1e-6));
        auto const tally = task->evaluate(model, {logits, truth});
        CHECK(tally.counts == all->evaluate(model, rest).counts);
        CHECK(tally.weight == expected.weight);
        auto const none = torch::full({1, 2, 2}, 255, torch::kInt64);
        auto const empty = task->training_loss(model, {logits, none});
        CHECK(empty.weight == 0);
        CHECK(empty.sum.item<double>() == Approx(0).margin(1e-6));
        CHECK(test::error_of([&] {
                  task->training_loss(model, {logits, truth - 1});
              }).code() == ExitCode::data);
    }
    auto samples = of_places();
    samples.metrics = {"dice"};
    auto const task = task::make_task({"segmentation", "", {}}, samples);
    auto const guess = torch::tensor({0, 1, 1, 1}, torch::kInt64).reshape({1, 2, 2});
    auto const given = torch::one_hot(guess, 3).permute({0, 3, 1, 2}).to(torch::kFloat32);
    auto const metrics = task->metrics(task->evaluate(
        model, {given, torch::tensor({0, 0, 1, 2}, torch::kInt64).reshape({1, 2, 2})}));
    CHECK(metrics.at("dice.a") == Approx(2.0 / 3)); // 2 * 1 / (2 + 1)
    CHECK(metrics.at("dice.b") == Approx(0.5));     // 2 * 1 / (1 + 3)
    CHECK(metrics.at("dice") == Approx((2.0 / 3 + 0.5) / 3));
}
