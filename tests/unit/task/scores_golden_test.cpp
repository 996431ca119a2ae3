// Figures of predictions, and weights of classes, as scikit-learn has them.

#include "lockstep/task/task.hpp"

#include "catch.hpp"
#include "echo.hpp"
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
        test::Echo model;
        task::Tally total{0, 0, std::vector<std::int64_t>(task.counts(), 0)};
        for (auto const& [first, last] :
             {std::pair{0, 7}, std::pair{7, 200}, std::pair{200, 300}}) {
            auto const part = task.evaluate(
                model, {outputs.slice(0, first, last), targets.slice(0, first, last)});
            for (std::size_t i = 0; i < total.counts.size(); ++i) {
                total.counts[i] += part.counts[i];
            }
        }
        return task.metrics(total);
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
