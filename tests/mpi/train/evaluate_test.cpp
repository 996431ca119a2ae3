#include "batches/evaluate.hpp"

#include <stdexcept>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a measurement that fails leaves the model as it was found") {
    SharedSet const set(world());
    auto const deck = deck_with({.name = "mlp"});
    auto const task = task::make_task(deck.task, task::Samples::of(set.get()));
    auto const model = nn::make_model(deck.model, {{side, side}, 3}, 1);
    for (bool const training : {true, false}) {
        model->train(training);
        train::EvaluateOptions const options{
            .loader = {1, 1}, .stop = [](auto, auto) -> bool { throw std::runtime_error("no"); }};
        CHECK_THROWS(train::evaluate(world(), *model, *task, set.get(), options));
        CHECK(model->is_training() == training);
    }
}
