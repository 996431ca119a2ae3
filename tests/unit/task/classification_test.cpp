#include "lockstep/task/task.hpp"

#include <cmath>

#include "catch.hpp"
#include "echo.hpp"
#include "error_of.hpp"
#include "three_classes.hpp"

using namespace lockstep;

namespace {

/// Gives its inputs back as logits.
task::Tensors batch() {
    return {torch::tensor(
                {{2.0F, 0.0F, -1.0F}, {0.5F, 0.25F, 3.0F}, {1.0F, 4.0F, 0.0F}, {0.0F, 1.0F, 2.0F}}),
            torch::tensor({std::int64_t{0}, std::int64_t{2}, std::int64_t{0}, std::int64_t{1}})};
}

double log_softmax(task::Tensors const& tensors, std::int64_t row, std::int64_t column) {
    double sum = 0;
    for (std::int64_t i = 0; i < 3; ++i) {
        sum += std::exp(tensors.inputs.only()[row][i].item<double>());
    }
    return tensors.inputs.only()[row][column].item<double>() - std::log(sum);
}

/// The sum of losses by hand: the target gets 1 - share, and all classes share / 3 more.
double loss_by_hand(double share) {
    auto const tensors = batch();
    double loss = 0;
    for (std::int64_t row = 0; row < 4; ++row) {
        auto const target = tensors.targets.only()[row].item<std::int64_t>();
        for (std::int64_t column = 0; column < 3; ++column) {
            double const weight = (column == target ? 1 - share : 0) + share / 3;
            loss -= weight * log_softmax(tensors, row, column);
        }
    }
    return loss;
}

std::unique_ptr<task::Task> classification(config::OwnKeys const& keys = {}) {
    return task::make_task({"classification", "accuracy", keys}, test::three_classes());
}

} // namespace

TEST_CASE("the training loss is the sum over samples, its weight their number") {
    test::Echo model;
    auto const loss = classification()->training_loss(model, batch());
    CHECK(loss.sum.item<double>() == Approx(loss_by_hand(0)));
    CHECK(loss.weight == 4);
    CHECK(loss.counts.equal(torch::tensor({1, 2, 1, 0, 1, 1, 1, 1, 2}, torch::kInt64)));
}

TEST_CASE("label smoothing spreads a share of the target over all classes, in training only") {
    test::Echo model;
    auto const smooth = classification({{"label-smoothing", "0.1"}});
    CHECK(smooth->training_loss(model, batch()).sum.item<double>() == Approx(loss_by_hand(0.1)));
    CHECK(smooth->evaluate(model, batch()).loss_sum == Approx(loss_by_hand(0)));
}

TEST_CASE("labels of mixed samples are learnt by their shares, and the heavier one counts") {
    test::Echo model;
    auto const others = torch::tensor({2, 1, 1, 0}, torch::kInt64);
    for (double const share : {0.3, 0.75}) {
        for (auto const* weights : {"none", "1, 2, 0.5"}) {
            CAPTURE(share, weights);
            auto const learnt =
                classification({{"class-weights", weights}, {"label-smoothing", "0.1"}});
            auto of_others = batch();
            of_others.targets = others;
            auto const one = learnt->training_loss(model, batch());
            auto const other = learnt->training_loss(model, of_others);
            auto mixed = batch();
            mixed.targets = nn::Fields({{batch().targets.only(), {}},
                                        {others, {}},
                                        {torch::full({4}, share, torch::kFloat32), {}}});
            auto const loss = learnt->training_loss(model, mixed);
            auto const by_shares = [&](double first, double second) {
                return share * first + (1 - share) * second;
            };
            CHECK(loss.sum.item<double>() ==
                  Approx(by_shares(one.sum.item<double>(), other.sum.item<double>())));
            CHECK(loss.weight == Approx(by_shares(one.weight, other.weight)));
            CHECK(loss.counts.equal(share > 0.5 ? one.counts : other.counts));
        }
    }
    task::Tensors none{torch::zeros({0, 3}), torch::zeros({0}, torch::kInt64)};
    none.targets =
        nn::Fields({{none.targets.only(), {}}, {none.targets.only(), {}}, {torch::zeros({0}), {}}});
    CHECK(classification()->training_loss(model, none).sum.item<double>() == 0);
    // The same as torch's cross entropy with probabilities.
    auto mixed = batch();
    mixed.targets = nn::Fields(
        {{batch().targets.only(), {}}, {others, {}}, {torch::full({4}, 0.3, torch::kFloat32), {}}});
    auto const probabilities =
        torch::one_hot(batch().targets.only(), 3) * 0.3F + torch::one_hot(others, 3) * 0.7F;
    CHECK(
        classification()->training_loss(model, mixed).sum.item<double>() ==
        Approx(
            -(torch::log_softmax(batch().inputs.only(), 1) * probabilities).sum().item<double>()));
}

TEST_CASE("an evaluated batch gives hits, true and predicted ones of each class") {
    test::Echo model;
    auto const tally = classification()->evaluate(model, batch());
    CHECK(tally.weight == 4);
    CHECK(tally.counts == std::vector<std::int64_t>{1, 2, 1, 0, 1, 1, 1, 1, 2});
}

TEST_CASE("counts grow in proportion to the classes") {
    test::Echo model;
    auto samples = test::three_classes();
    samples.class_names.resize(100'000);
    auto const logits = torch::zeros({4, 100'000});
    auto const labels = torch::tensor({0, 0, 99'999, 7}, torch::kInt64);
    auto const task = task::make_task({"classification", "", {}}, samples);
    CHECK(task->counts() == 300'000);
    CHECK(task->evaluate(model, {logits, labels}).counts.size() == 300'000);
    auto of_places = samples;
    of_places.targets = {
        {.name = "targets", .type = h5::Type::i64, .shape = {1, 1}, .whole = true}};
    auto const segmentation = task::make_task({"segmentation", "", {}}, of_places);
    CHECK(segmentation->counts() == 300'000);
    CHECK(segmentation->evaluate(model, {logits.reshape({4, -1, 1, 1}), labels.reshape({4, 1, 1})})
              .counts.size() == 300'000);
}

TEST_CASE("figures come from the summed counts") {
    auto const task = classification();
    // scikit-learn: y_true = 0 0 0 0 0 1 1 1 2 2, y_pred = 0 0 0 1 2 1 1 0 2 0
    auto const metrics = task->metrics({0, 1, {3, 5, 5, 2, 3, 3, 1, 2, 2}});
    CHECK(metrics.at("accuracy") == Approx(0.6));
    CHECK(metrics.at("f1") == Approx((6.0 / 10 + 4.0 / 6 + 2.0 / 4) / 3));
    CHECK(metrics.at("f1.b") == Approx(4.0 / 6));
    auto const all_right = task->metrics({0, 1, {4, 4, 4, 4, 4, 4, 4, 4, 4}});
    CHECK(all_right.at("accuracy") == 1);
    CHECK(all_right.at("f1") == 1);
    // A class that was predicted but never true counts, with 0; one that is neither does not.
    CHECK(task->metrics({0, 1, {3, 4, 3, 0, 0, 1, 0, 0, 0}}).at("f1") == Approx((6.0 / 7) / 2));
    CHECK(task->metrics({0, 1, std::vector<std::int64_t>(9, 0)}).at("accuracy") == 0);
}

TEST_CASE("a task or key that is not there is named with the nearest") {
    CHECK(test::error_of([] {
              task::make_task({"clasification", "accuracy", {}}, test::three_classes());
          }).code() == ExitCode::usage);
    auto const key = test::error_of([] { classification({{"label-smoothin", "0.1"}}); });
    CHECK(test::says(key, "Did you mean task.label-smoothing?"));
    CHECK(test::error_of([] {
              classification({{"label-smoothing", "1"}});
          }).code() == ExitCode::usage);
}

TEST_CASE("weights of classes multiply their samples' losses, and the sum's divisor") {
    test::Echo model;
    // Targets 0, 2, 0, 1 of counts 5, 3, 2: balanced weights are 10 / (3 n).
    std::vector<double> const weights{10.0 / 15, 10.0 / 9, 10.0 / 6};
    double expected = 0;
    auto const tensors = batch();
    for (std::int64_t row = 0; row < 4; ++row) {
        auto const target = tensors.targets.only()[row].item<std::int64_t>();
        expected -= weights[static_cast<std::size_t>(target)] * log_softmax(tensors, row, target);
    }
    auto const task = classification({{"class-weights", "balanced"}});
    auto const loss = task->training_loss(model, tensors);
    CHECK(loss.sum.item<double>() == Approx(expected));
    CHECK(loss.weight == Approx(2 * weights[0] + weights[1] + weights[2]));
    CHECK(task->class_weights()[2] == Approx(weights[2]));
    CHECK(task->evaluate(model, tensors).loss_sum == Approx(loss_by_hand(0)));
    // Shares 0.5, 0.3, 0.2: the median is 0.3.
    CHECK(classification({{"class-weights", "median"}})->class_weights()[0] == Approx(0.6));
    CHECK(classification({{"class-weights", "1, 2, 0.5"}})->class_weights()[1] == 2);
    for (auto const* wrong : {"1, 2", "1, x, 3", "balance", ""}) {
        CHECK(test::error_of([&] {
                  classification({{"class-weights", wrong}});
              }).code() == ExitCode::usage);
    }
}

TEST_CASE("balanced weights are scikit-learn's") {
    auto samples = test::three_classes();
    samples.class_counts = {2173, 720, 440, 320, 200, 107, 40};
    samples.class_names = {"a", "b", "c", "d", "e", "f", "g"};
    auto const task =
        task::make_task({"classification", "", {{"class-weights", "balanced"}}}, samples);
    // sklearn.utils.class_weight.compute_class_weight("balanced", ...)
    std::vector<double> const expected{0.262967587, 0.793650806, 1.298701286, 1.785714269,
                                       2.857142925, 5.340454102, 14.285714149};
    for (std::size_t c = 0; c < expected.size(); ++c) {
        CHECK(task->class_weights()[c] == Approx(expected[c]).epsilon(1e-7));
    }
}

TEST_CASE("a class without samples weighs nothing and is no class to the others") {
    auto samples = test::three_classes();
    samples.class_counts = {5, 0, 3};
    auto const weights = [&](std::string const& wanted) {
        return task::make_task({"classification", "", {{"class-weights", wanted}}}, samples)
            ->class_weights();
    };
    CHECK(weights("balanced") == std::vector{8.0 / (2 * 5), 0.0, 8.0 / (2 * 3)});
    CHECK(weights("median")[0] == Approx(0.8));
    CHECK(weights("median")[1] == 0);
}

TEST_CASE("a metric is looked up in the deck's task, the first when none is named") {
    config::Deck chosen;
    CHECK(task::metric_of(chosen, "task.metric", "").name == "accuracy");
    CHECK(task::metric_of(chosen, "task.metric", "f1").more_is_better);
    CHECK_FALSE(task::metric_of(chosen, "task.metric", "loss").more_is_better);
    CHECK(test::error_of([&] { task::metric_of(chosen, "task.metric", "blue"); }).code() ==
          ExitCode::usage);
    chosen.task.kind = "regression";
    CHECK(task::metric_of(chosen, "task.metric", "").name == "mae");
}

TEST_CASE("targets that are no labels are refused") {
    auto samples = test::three_classes();
    samples.targets.front().whole = false;
    CHECK(test::error_of([&] {
              task::make_task({"classification", "", {}}, samples);
          }).code() == ExitCode::data);
}
