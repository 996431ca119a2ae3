// Hashes of the weights of all ranks, and who is named when they differ.

#include "base/text.hpp"
#include "comm/collectives.hpp"

#include <algorithm>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a rank whose weights differ is named on every rank") {
    if (world().size() < 2) {
        return; // one rank has nobody to differ from
    }
    SharedSet const set(world());
    // With parameters of their own: those of one host are one array.
    Training training(world(), set.get(), deck_with({"mlp", {}}), 1);
    training.step();
    int const odd = world().size() - 1;
    if (world().rank() == odd) {
        torch::NoGradGuard const no_grad;
        training.model().parameters().front().view(-1)[0].add_(1e-3);
    }
    auto const first = training.engine().nodes()[static_cast<std::size_t>(odd)].first;
    CHECK(training.engine().replica_check().hash().diverged ==
          concat("replica ", first, " on rank ", odd, " differ from replica 0's, first in ",
                 training.model().named_parameters()[0].key()));
    int named = -1;
    auto code = ExitCode::ok;
    try {
        training.engine().replica_check().require_same(1);
    } catch (AgreedError const& error) {
        named = error.rank();
        code = error.code();
    }
    CHECK(code == ExitCode::rank_lost);
    auto const all = comm::all_gather(world(), named);
    CHECK(std::all_of(all.begin(), all.end(), [&](int each) { return each == named; }));
    if (world().size() > 2) { // of two, nobody knows which is right
        CHECK(named == odd);
    }
}

TEST_CASE("what lies between parameters is not hashed, the buffers are") {
    SharedSet const set(world());
    Training training(world(), set.get(), deck_with({"cnn", {}}), 1);
    auto& engine = training.engine();
    training.step();
    auto const before = engine.replica_check().hash().value;
    auto const& last = engine.layout().entries.back();
    REQUIRE(last.first + last.count < engine.layout().size);
    auto* const behind =
        training.model().named_parameters()[last.name].data_ptr<float>() + last.count;
    *behind += 1;
    CHECK(engine.replica_check().hash().value == before);
    auto const kept = training.model().parameters().front().clone();
    training.step(0); // moves nothing but running statistics
    CHECK(torch::equal(training.model().parameters().front(), kept));
    CHECK(engine.replica_check().hash().value != before);
    CHECK(engine.replica_check().hash().diverged.empty());
}
