#include "lockstep/base/error.hpp"
#include "lockstep/nn/registry.hpp"
#include "nn/sequence_model.hpp"

#include "catch.hpp"
#include "distance.hpp"

using namespace lockstep;

namespace {

config::OwnKeys const small{{"width", "12"}, {"theta", "4, 6"}, {"signals", "3"},
                            {"order", "4"},  {"hidden", "16"},  {"dropout", "0.2"}};

std::shared_ptr<nn::SequenceModel> model_of(config::OwnKeys const& keys,
                                            nn::Interface const& interface) {
    return std::dynamic_pointer_cast<nn::SequenceModel>(
        nn::make_model({"lmu-asr", keys}, interface, 3));
}

nn::Field recordings(std::vector<std::int64_t> const& lengths) {
    std::int64_t rows = 0;
    for (auto const length : lengths) {
        rows += length;
    }
    return {torch::sin(0.37 * torch::arange(rows * 5).to(torch::kFloat32)).reshape({rows, 5}),
            torch::tensor(lengths, torch::kInt64)};
}

nn::Fields only(nn::Field field) {
    return nn::Fields(std::vector<nn::Field>{std::move(field)});
}

} // namespace

TEST_CASE("the networks of the decks have the parameters that they are known by") {
    nn::Interface const phones{.sample_shape = {40}, .outputs = 52};
    auto const counted = [&](config::OwnKeys const& keys) {
        std::int64_t parameters = 0;
        for (auto const& parameter : model_of(keys, phones)->parameters()) {
            parameters += parameter.numel();
        }
        CHECK(nn::parameter_count({"lmu-asr", keys}, phones) == static_cast<double>(parameters));
        return parameters;
    };
    CHECK(counted({}) == 351316);
    CHECK(counted({{"width", "448"},
                   {"theta", "8, 12, 16, 24, 32"},
                   {"signals", "48"},
                   {"hidden", "1344"},
                   {"kernel", "7"}}) == 7159332);
    CHECK(counted(small) > 0);
}

TEST_CASE("a sample's scores do not depend on what it is padded to, beyond rounding") {
    auto const model = model_of(small, {.sample_shape = {5}, .outputs = 7});
    model->eval();
    std::vector<std::int64_t> const lengths{20, 1, 47, 33};
    auto const all = recordings(lengths);
    auto const together = model->forward(only(all));
    auto const own = model->output_lengths(all.lengths);
    CHECK(together.sizes() == torch::IntArrayRef({4, 7, own.max().item<std::int64_t>()}));
    CHECK(torch::equal(own, torch::tensor({7, 1, 16, 11}, torch::kInt64)));
    std::int64_t row = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
        auto const length = lengths[static_cast<std::size_t>(i)];
        nn::Field const one{all.values.narrow(0, row, length),
                            torch::tensor({length}, torch::kInt64)};
        row += length;
        auto const alone = model->forward(only(one));
        CHECK(test::distance(alone[0], together[i].narrow(1, 0, alone.size(2))) < 1e-5);
    }
}

TEST_CASE("recurrent and parallel form of a network agree, and their gradients") {
    auto keys = small;
    keys["dropout"] = "0";
    auto const results = [&](std::string const& form, bool recompute) {
        keys["form"] = form;
        auto const model =
            model_of(keys, {.sample_shape = {5}, .outputs = 7, .recompute = recompute});
        auto const scores = model->forward(only(recordings({31, 44})));
        scores.square().sum().backward();
        std::vector<torch::Tensor> gradients;
        for (auto const& parameter : model->parameters()) {
            gradients.push_back(parameter.grad().flatten());
        }
        return std::pair{scores, torch::cat(gradients)};
    };
    auto const [scores, gradients] = results("parallel", false);
    auto const [stepwise, gradients_stepwise] = results("recurrent", false);
    CHECK(test::distance(scores, stepwise) < 1e-5);
    CHECK(test::distance(gradients, gradients_stepwise) <
          1e-4 * gradients.abs().max().item<double>());
    auto const [again, gradients_again] = results("parallel", true);
    CHECK(torch::equal(scores, again));
    CHECK(torch::equal(gradients, gradients_again));
}

TEST_CASE("what a network of speech cannot take is refused") {
    CHECK_THROWS_AS(model_of(small, {.sample_shape = {5, 5}, .outputs = 7}), Error);
    CHECK_THROWS_AS(model_of({{"form", "round"}}, {.sample_shape = {5}, .outputs = 7}), Error);
}
