// Figures of predictions, and weights of classes, as scikit-learn has them.

#include "lockstep/task/task.hpp"

#include "catch.hpp"
#include "echo.hpp"
#include "error_of.hpp"
#include "golden.hpp"
#include "three_classes.hpp"

using namespace lockstep;

namespace {

struct GoldenScores {
    nlohmann::json json = test::golden("scores.json");
    std::int64_t classes = json["classes"];
    torch::Tensor truth = numbers("truth");
    torch::Tensor predicted = numbers("predicted");

    torch::Tensor numbers(char const* name) const {
        return torch::tensor(json[name].get<std::vector<std::int64_t>>(), torch::kInt64);
    }
    task::Samples samples() const {
        auto samples = test::three_classes();
        samples.class_names.clear();
        samples.class_counts.clear();
        for (std::int64_t c = 0; c < classes; ++c) {
            samples.class_names.push_back(std::to_string(c));
            samples.class_counts.push_back(truth.eq(c).sum().item<std::int64_t>());
        }
        return samples;
    }
    /// Figures of three batches of unlike sizes together.
    task::Metrics metrics(task::Task const& task, torch::Tensor const& outputs,
                          torch::Tensor const& targets) const {
        return task.metrics(tally(task, outputs, targets));
    }
    static task::Tally tally(task::Task const& task, torch::Tensor const& outputs,
                             torch::Tensor const& targets) {
        test::Echo model;
        task::Tally total{0, 0, std::vector<std::int64_t>(task.counts(), 0),
                          std::vector<double>(task.sums(), 0)};
        auto const samples = outputs.size(0);
        for (auto const& [first, last] :
             {std::pair{std::int64_t{0}, std::int64_t{7}}, std::pair{std::int64_t{7}, samples / 2},
              std::pair{samples / 2, samples}}) {
            auto const part = task.evaluate(
                model, {outputs.slice(0, first, last), targets.slice(0, first, last)});
            REQUIRE(part.counts.size() == total.counts.size());
            REQUIRE(part.sums.size() == total.sums.size());
            CHECK(part.scores.size() == task.scores() * static_cast<std::size_t>(last - first));
            for (std::size_t i = 0; i < total.counts.size(); ++i) {
                total.counts[i] += part.counts[i];
            }
            for (std::size_t i = 0; i < total.sums.size(); ++i) {
                total.sums[i] += part.sums[i];
            }
            total.scores.insert(total.scores.end(), part.scores.begin(), part.scores.end());
        }
        return total;
    }
};

} // namespace

TEST_CASE("accuracy and F1 are scikit-learn's, whatever the batches") {
    GoldenScores const golden;
    auto const task = task::make_task({"classification", "", {}}, golden.samples());
    auto const logits = torch::one_hot(golden.predicted, golden.classes).to(torch::kFloat32);
    auto const metrics = golden.metrics(*task, logits, golden.truth);
    CHECK(metrics.at("accuracy") == Approx(golden.json["accuracy"].get<double>()).epsilon(1e-12));
    CHECK(metrics.at("f1") == Approx(golden.json["f1"].get<double>()).epsilon(1e-12));
    for (auto const& [name, value] : golden.json["f1_of_class"].items()) {
        CAPTURE(name);
        CHECK(metrics.at("f1." + name) == Approx(value.get<double>()).epsilon(1e-12));
    }
    CHECK(metrics.count("f1.4") == 0); // neither true nor predicted
}

TEST_CASE("the IoU is scikit-learn's Jaccard score over all places") {
    GoldenScores const golden;
    auto samples = golden.samples();
    samples.targets = {{.name = "targets", .type = h5::Type::i64, .shape = {1, 1}, .whole = true}};
    auto const task = task::make_task({"segmentation", "", {}}, samples);
    auto const logits = torch::one_hot(golden.predicted, golden.classes)
                            .to(torch::kFloat32)
                            .reshape({-1, golden.classes, 1, 1});
    auto const metrics = golden.metrics(*task, logits, golden.truth.reshape({-1, 1, 1}));
    CHECK(metrics.at("iou") == Approx(golden.json["iou"].get<double>()).epsilon(1e-12));
}

TEST_CASE("balanced weights are scikit-learn's of the classes that occur") {
    GoldenScores const golden;
    auto const weights =
        task::make_task({"classification", "", {{"class-weights", "balanced"}}}, golden.samples())
            ->class_weights();
    for (auto const& [name, value] : golden.json["balanced"].items()) {
        CAPTURE(name);
        CHECK(weights[std::stoul(name)] == Approx(value.get<double>()).epsilon(1e-12));
    }
}

TEST_CASE("errors of real values are scikit-learn's") {
    GoldenScores const golden;
    auto samples = test::three_classes();
    samples.targets = {{.name = "targets", .type = h5::Type::f32, .shape = {1}}};
    auto const task = task::make_task({"regression", "", {}}, samples);
    auto const real_values = [&](std::size_t row) {
        return torch::tensor(golden.json["reals"][row].get<std::vector<double>>(), torch::kFloat32)
            .reshape({-1, 1});
    };
    test::Echo model;
    auto const metrics = task->metrics(task->evaluate(model, {real_values(1), real_values(0)}));
    CHECK(metrics.at("mae") == Approx(golden.json["mae"].get<double>()).epsilon(1e-6));
    CHECK(metrics.at("rmse") == Approx(golden.json["rmse"].get<double>()).epsilon(1e-6));
}

namespace {

template <class Number>
std::vector<Number> flat(nlohmann::json const& rows) {
    std::vector<Number> all;
    for (auto const& row : rows) {
        for (auto const& value : row) {
            all.push_back(value.get<Number>());
        }
    }
    return all;
}

torch::Tensor reals(nlohmann::json const& rows) {
    auto const columns = static_cast<std::int64_t>(rows[0].size());
    return torch::tensor(flat<double>(rows), torch::kFloat64)
        .to(torch::kFloat32)
        .reshape({-1, columns});
}

/// A classification of these classes that is asked for more metrics.
std::unique_ptr<task::Task> asked(task::Samples samples, std::vector<std::string> metrics) {
    samples.metrics = std::move(metrics);
    return task::make_task({"classification", "", {}}, samples);
}

} // namespace

TEST_CASE("metrics of predicted classes that a deck asks for are scikit-learn's") {
    GoldenScores const golden;
    auto const task =
        asked(golden.samples(), {"kappa", "balanced-accuracy", "precision", "recall", "confusion"});
    auto const logits = torch::one_hot(golden.predicted, golden.classes).to(torch::kFloat32);
    auto const total = GoldenScores::tally(*task, logits, golden.truth);
    auto const metrics = task->metrics(total);
    for (auto const& [name, key] :
         {std::pair{"kappa", "kappa"}, std::pair{"balanced-accuracy", "balanced_accuracy"},
          std::pair{"precision", "precision"}, std::pair{"recall", "recall"},
          std::pair{"accuracy", "accuracy"}, std::pair{"f1", "f1"}}) {
        CAPTURE(name);
        CHECK(metrics.at(name) == Approx(golden.json[key].get<double>()).epsilon(1e-12));
    }
    CHECK(task->confusion(total) == flat<std::int64_t>(golden.json["confusion"]));
}

TEST_CASE("metrics of scores are scikit-learn's, whatever the batches") {
    GoldenScores const golden;
    auto const task =
        asked(golden.samples(), {"top-2", "auroc", "average-precision", "calibration-error"});
    auto const metrics = golden.metrics(*task, reals(golden.json["logits"]), golden.truth);
    CHECK(metrics.at("top-2") == Approx(golden.json["top_2"].get<double>()).epsilon(1e-12));
    CHECK(metrics.at("auroc") == Approx(golden.json["auroc"].get<double>()).epsilon(1e-12));
    for (auto const& [name, value] : golden.json["auroc_of_class"].items()) {
        CAPTURE(name);
        CHECK(metrics.at("auroc." + name) == Approx(value.get<double>()).epsilon(1e-12));
    }
    CHECK(metrics.count("auroc.4") == 0);
    CHECK(metrics.at("average-precision") ==
          Approx(golden.json["average_precision"].get<double>()).epsilon(1e-12));
    CHECK(metrics.at("calibration-error") ==
          Approx(golden.json["calibration_error"].get<double>()).epsilon(1e-6));
}

TEST_CASE("of two classes, scores are those of the second, and ties count half") {
    GoldenScores const golden;
    auto samples = golden.samples();
    samples.class_names = {"no", "yes"};
    samples.class_counts = {1, 1};
    auto const task = asked(samples, {"auroc", "average-precision"});
    auto const& binary = golden.json["binary"];
    auto const score = torch::tensor(binary["score"].get<std::vector<double>>(), torch::kFloat32);
    auto const truth =
        torch::tensor(binary["truth"].get<std::vector<std::int64_t>>(), torch::kInt64);
    auto const metrics =
        golden.metrics(*task, torch::stack({torch::zeros_like(score), score}, 1), truth);
    CHECK(metrics.at("auroc") == Approx(binary["auroc"].get<double>()).epsilon(1e-12));
    CHECK(metrics.at("average-precision") ==
          Approx(binary["average_precision"].get<double>()).epsilon(1e-12));
    CHECK(metrics.count("auroc.yes") == 0);
}

TEST_CASE("metrics of samples with any number of labels are scikit-learn's") {
    GoldenScores const golden;
    auto const& labels = golden.json["labels"];
    auto samples = test::three_classes();
    samples.class_names = {};
    samples.targets = {{.name = "targets", .type = h5::Type::u8, .shape = {4}}};
    samples.metrics = {"auroc", "average-precision"};
    auto const task = task::make_task({"multi-label", "", {}}, samples);
    CHECK(task->outputs() == 4);
    auto const logits = reals(labels["logits"]);
    auto const truth = reals(labels["truth"]);
    auto const metrics = golden.metrics(*task, logits, truth);
    for (auto const& [name, key] :
         {std::pair{"f1", "f1"}, std::pair{"micro-f1", "micro_f1"},
          std::pair{"subset-accuracy", "subset_accuracy"}, std::pair{"auroc", "auroc"},
          std::pair{"average-precision", "average_precision"}}) {
        CAPTURE(name);
        CHECK(metrics.at(name) == Approx(labels[key].get<double>()).epsilon(1e-12));
    }
    // -y log p - (1 - y) log(1 - p), p = 1 / (1 + exp(-x))
    test::Echo model;
    auto const shares = torch::sigmoid(logits.to(torch::kFloat64));
    auto const each = truth * shares.log() + (1 - truth) * (1 - shares).log();
    auto const loss = task->training_loss(model, {logits, truth});
    CHECK(loss.weight == static_cast<double>(truth.numel()));
    CHECK(loss.sum.item<double>() == Approx(-each.sum().item<double>()).epsilon(1e-6));
    CHECK(test::error_of([&] {
              task->training_loss(model, {logits, 2 * truth});
          }).code() == ExitCode::data);
}

TEST_CASE("R2 is scikit-learn's, of each column and as their mean") {
    GoldenScores const golden;
    auto const& columns = golden.json["columns"];
    auto samples = test::three_classes();
    samples.class_names = {"a", "b"};
    samples.targets = {{.name = "targets", .type = h5::Type::f32, .shape = {2}}};
    samples.metrics = {"r2", "rmse"};
    auto const task = task::make_task({"regression", "", {}}, samples);
    auto const truth = reals(columns["truth"]);
    auto const given = reals(columns["given"]);
    auto const metrics = golden.metrics(*task, given, truth);
    CHECK(metrics.at("r2") == Approx(columns["r2"].get<double>()).epsilon(1e-6));
    CHECK(metrics.at("r2.a") == Approx(columns["r2_of_column"][0].get<double>()).epsilon(1e-6));
    CHECK(metrics.at("r2.b") == Approx(columns["r2_of_column"][1].get<double>()).epsilon(1e-6));
    auto const first = (given - truth).select(1, 0).square().mean().sqrt().item<double>();
    CHECK(metrics.at("rmse.a") == Approx(first).epsilon(1e-6));
}

TEST_CASE("what a deck does not ask for is neither kept nor told") {
    GoldenScores const golden;
    auto const task = asked(golden.samples(), {});
    CHECK(task->scores() == 0);
    CHECK(task->sums() == 0);
    auto const total = GoldenScores::tally(*task, reals(golden.json["logits"]), golden.truth);
    CHECK(task->confusion(total).empty());
    for (auto const& [name, value] : task->metrics(total)) {
        CAPTURE(name, value);
        CHECK((name == "accuracy" || name.starts_with("f1")));
    }
}

TEST_CASE("a matrix of too many classes and a K that takes in all of them are refused") {
    GoldenScores const golden;
    CHECK(test::says(test::error_of([&] { asked(golden.samples(), {"top-6"}); }), "6 classes"));
    auto many = golden.samples();
    many.class_names.resize(129);
    many.class_counts.resize(129);
    CHECK(test::says(test::error_of([&] { asked(many, {"confusion"}); }), "at most 128"));
}

TEST_CASE("metrics that a deck names are those of its task") {
    config::Deck deck;
    deck.task.metrics = "kappa, top-3";
    deck.checkpoint.best = "auroc";
    CHECK(task::asked_metrics(deck) == std::vector<std::string>{"kappa", "top-3", "auroc"});
    deck.checkpoint.best = "f1";
    CHECK(task::asked_metrics(deck) == std::vector<std::string>{"kappa", "top-3"});
    CHECK(task::metric_of(deck, "task.metric", "calibration-error").more_is_better == false);
    for (char const* wrong : {"kapa", "top-", "top-0", "top-K", "top-x"}) {
        CAPTURE(wrong);
        deck.task.metrics = wrong;
        CHECK(test::error_of([&] { task::asked_metrics(deck); }).code() == ExitCode::usage);
    }
    auto const error = test::error_of([&] { task::metric_of(deck, "task.metric", "confusion"); });
    CHECK(test::says(error, "confusion is a table"));
}
