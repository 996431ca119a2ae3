#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "lockstep/task/task.hpp"
#include "lockstep/train/layout.hpp"

#include "catch.hpp"

using namespace lockstep;

TEST_CASE("a model has as many parameters as it says before it is made") {
    for (auto const& [name, keys] : std::vector<std::pair<std::string, config::OwnKeys>>{
             {"cnn", {}},
             {"cnn", {{"channels", "3, 5, 7"}, {"batch-norm", "false"}, {"dropout", "0.5"}}},
             {"mlp", {{"hidden", "31, 7"}, {"dropout", "0.1"}}}}) {
        config::Model const chosen{name, keys};
        nn::Interface const interface { {28, 28}, 10 };
        auto const model = nn::make_model(chosen, interface, 0);
        CHECK(static_cast<double>(train::Layout::of(*model).parameters) ==
              nn::parameter_count(chosen, interface));
    }
    CHECK(nn::parameter_count({"cnn", {}}, {{28, 28}, 10}) == 105962);
}

TEST_CASE("a model is the seed's, and needs images where it is for images") {
    nn::Interface const interface { {28, 28}, 10 };
    auto const a = nn::make_model({"cnn", {}}, interface, 1);
    auto const b = nn::make_model({"cnn", {}}, interface, 1);
    auto const c = nn::make_model({"cnn", {}}, interface, 2);
    CHECK(torch::equal(a->parameters()[0], b->parameters()[0]));
    CHECK_FALSE(torch::equal(a->parameters()[0], c->parameters()[0]));
    CHECK_THROWS_AS(nn::make_model({"cnn", {}}, {{28}, 10}, 1), Error);
    CHECK_THROWS_AS(nn::make_model({"cnm", {}}, interface, 1), Error);
}

TEST_CASE("dropout is drawn from the key alone") {
    auto const model = nn::make_model({"mlp", {{"dropout", "0.5"}}}, {{8}, 3}, 1);
    auto const inputs = torch::ones({4, 8});
    auto const output = [&](std::uint64_t key) {
        model->set_random_key(key);
        return model->forward(inputs);
    };
    auto const first = output(1);
    torch::rand({100}); // another use of the process's generator changes nothing
    CHECK(torch::equal(first, output(1)));
    CHECK_FALSE(torch::equal(first, output(2)));
    model->eval();
    CHECK(torch::equal(output(1), output(2)));
}

TEST_CASE("accuracy and macro F1 come from the confusion matrix") {
    auto const task = task::make_task({"classification", "accuracy", {}}, 3);
    // True classes in rows: 3 + 1 + 0, 1 + 1 + 0, and a class that never occurs.
    auto const metrics = task->metrics({3, 1, 0, 1, 1, 0, 0, 0, 0});
    CHECK(metrics.at("accuracy") == Approx(4.0 / 6));
    CHECK(metrics.at("f1") == Approx((6.0 / 8 + 2.0 / 4) / 2));
    CHECK(task->more_is_better("f1"));
    CHECK_FALSE(task->more_is_better("loss"));
    CHECK_THROWS_AS(task->more_is_better("blue"), Error);
}
