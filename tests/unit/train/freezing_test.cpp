#include "arena/layout.hpp"
#include "base/name_patterns.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/nn/dropout.hpp"
#include "nn/evaluation_mode.hpp"
#include "nn/freezing.hpp"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;

namespace {

/// Two layers with a batch norm each, one of which has a statistic and no parameters; dropout.
struct NormedModel : nn::Model {
    NormedModel() {
        body->push_back("linear1", torch::nn::Linear(3, 4));
        body->push_back("norm1", torch::nn::BatchNorm1d(4));
        body->push_back("drop", torch::nn::Dropout(0.5));
        body->push_back("norm2",
                        torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(4).affine(false)));
        register_module("body", body);
        register_module("output", output);
        fixed.set_requires_grad(false);
    }
    torch::Tensor forward(nn::Fields const& inputs) override {
        return output(body->forward(inputs.only())) * fixed;
    }

    torch::nn::Sequential body;
    torch::nn::Linear output{4, 2};
    torch::Tensor fixed = register_parameter("fixed", torch::ones({2}));
};

std::vector<std::string> trained_of(nn::Model const& model) {
    std::vector<std::string> names;
    for (auto const& item : model.named_parameters()) {
        if (item.value().requires_grad()) {
            names.push_back(item.key());
        }
    }
    return names;
}

bool trains(nn::Model const& model, std::string const& layer) {
    return model.named_modules()[layer]->is_training();
}

/// One parameter under two names.
struct Tied : nn::Model {
    Tied() { register_parameter("second", first); }
    torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only() * first; }
    torch::Tensor first = register_parameter("first", torch::zeros({2}));
    torch::Tensor other = register_parameter("other", torch::zeros({2}));
};

} // namespace

TEST_CASE("a parameter that layers share is frozen by any of its names, and thawed by the first") {
    for (auto const* const pattern : {"first", "second", "*, !other"}) {
        CAPTURE(pattern);
        auto const model = std::make_shared<Tied>();
        auto const frozen = nn::freeze(*model, pattern);
        CHECK(frozen == std::vector<std::string>{"first"});
        CHECK_FALSE(model->first.requires_grad());
        auto layout = train::Layout::of(*model);
        CHECK(layout.thaw(frozen).size() == 1);
    }
}

TEST_CASE("patterns name parameters to freeze, all but some, or none") {
    using Names = std::vector<std::string>;
    Names const output{"output.weight", "output.bias"};
    struct Case {
        std::string patterns;
        Names frozen;
        Names trained;
    };
    Names const linear{"body.linear1.weight", "body.linear1.bias"};
    Names const norm{"body.norm1.weight", "body.norm1.bias"};
    auto const both = [](Names one, Names const& other) {
        one.insert(one.end(), other.begin(), other.end());
        return one;
    };
    for (auto const& [patterns, frozen, trained] : std::vector<Case>{
             {"none", {}, both(both(linear, norm), output)},
             {"body.*", both(linear, norm), output},
             {"!output.*", both(linear, norm), output},
             {"*, !output.*, !*.norm1.*", linear, both(norm, output)},
             {"*.bias", {linear[1], norm[1], output[1]}, {linear[0], norm[0], output[0]}},
             {"body.linear1.weight, fixed", {linear[0]}, both(both({linear[1]}, norm), output)}}) {
        CAPTURE(patterns);
        auto const model = std::make_shared<NormedModel>();
        CHECK(nn::freeze(*model, patterns) == frozen);
        CHECK(trained_of(*model) == trained);
        nn::thaw(*model, frozen);
        CHECK(trained_of(*model) == both(both(linear, norm), output)); // not `fixed`
    }
}

TEST_CASE("patterns that fit nothing or leave nothing to train are refused") {
    struct Case {
        std::string patterns;
        std::string told;
    };
    for (auto const& [patterns, told] :
         std::vector<Case>{{"boddy.*", "Did you mean body.*?"},
                           {"!outptu.*", "Did you mean output.*?"},
                           {"zzzzzzzzzzzzzz", "body.* and output.*"},
                           {"*", "no parameter is left to train"},
                           {"output.*, body.*", "no parameter is left to train"}}) {
        CAPTURE(patterns);
        auto const model = std::make_shared<NormedModel>();
        auto const error = test::error_of([&] { nn::freeze(*model, patterns); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(test::says(error, told));
    }
}

TEST_CASE(
    "frozen batch norms keep their statistics, dropout stays on, and evaluation changes no mode") {
    auto const model = std::make_shared<NormedModel>();
    auto const frozen = nn::freeze(*model, "body.norm*");
    auto const buffers = [&] {
        std::vector<torch::Tensor> values;
        for (auto const& buffer : model->buffers()) {
            values.push_back(buffer.clone());
        }
        return values;
    };
    auto const forward = [&] { model->forward(nn::Fields(torch::rand({8, 3}))); };
    auto const same = [](auto const& one, auto const& other) {
        return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                          [](auto const& a, auto const& b) { return torch::equal(a, b); });
    };
    for (bool const evaluated : {false, true}) {
        CAPTURE(evaluated);
        if (evaluated) {
            nn::EvaluationMode const mode(*model);
            CHECK_FALSE(trains(*model, "body.drop"));
        }
        CHECK_FALSE(trains(*model, "body.norm1"));
        CHECK_FALSE(trains(*model, "body.norm2"));
        CHECK(trains(*model, "body.drop"));
        CHECK(trains(*model, "body"));
        auto const before = buffers();
        forward();
        CHECK(same(before, buffers()));
    }
    nn::thaw(*model, frozen);
    auto const before = buffers();
    forward();
    CHECK_FALSE(same(before, buffers()));

    auto const others = std::make_shared<NormedModel>();
    nn::freeze(*others, "body.linear1.*, body.norm1.weight"); // a norm is frozen as a whole
    CHECK(trains(*others, "body.norm1"));
    CHECK(trains(*others, "body.norm2")); // has statistics alone, which no pattern names
}

TEST_CASE("a layout says which entries are trained, before and after they are thawed") {
    auto const model = std::make_shared<NormedModel>();
    auto const frozen = nn::freeze(*model, "body.*");
    auto layout = train::Layout::of(*model);
    CHECK(layout.parameters == 10);
    nn::thaw(*model, frozen);
    CHECK(layout.thaw(frozen).size() == 4);
    CHECK(layout.text() == train::Layout::of(*model).text());
    CHECK(layout.parameters == train::Layout::of(*model).parameters);
}
