// Steps that return while parameters are still on their way: the bits of steps that wait for them,
// and of one rank, whoever reads the model between two of them.

#include "device/configure_torch.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// This rank's part of a checkpoint, as bytes.
std::vector<std::byte> snapshot_of(train::Engine& engine) {
    std::vector<std::byte> all;
    auto const snapshot = engine.state().snapshot();
    for (auto const& parts : snapshot.parts) {
        for (auto const& part : parts) {
            all.insert(all.end(), part.bytes.begin(), part.bytes.end());
        }
    }
    return all;
}

/// What reads parameters between two steps; each after the same steps of two trainings.
void compare(Training& ours, Training& waiting, int step) {
    switch (step % 6) {
    case 1:
        CHECK(ours.engine().replica_check().hash().value ==
              waiting.engine().replica_check().hash().value);
        break;
    case 3:
        CHECK((snapshot_of(ours.engine()) == snapshot_of(waiting.engine())));
        break;
    case 4: {
        auto const averaged = ours.engine().averaged_weights();
        auto const expected = waiting.engine().averaged_weights();
        CHECK(same_bits(ours.model(), waiting.model()));
        comm::barrier(world()); // one array of the host: nobody goes back while others look
        break;
    }
    case 5:
        ours.engine().whole();
        CHECK(same_bits(ours.model(), waiting.model()));
        break;
    default: // nobody does
        break;
    }
}

void require_same(data::Dataset const& set, config::Deck const& deck, int ranks_per_host,
                  int steps) {
    auto const alone = comm::Communicator::self();
    Training ours(world(), set, deck, ranks_per_host);
    Training waiting(world(), set, deck, ranks_per_host);
    Training reference(alone, set, deck);
    for (int step = 0; step < steps; ++step) {
        CAPTURE(step);
        auto const outcome = ours.step(0.05, true);
        auto const expected = waiting.step();
        CHECK(outcome.loss_sum == expected.loss_sum);
        CHECK(outcome.grad_norm == expected.grad_norm);
        CHECK(outcome.exchange.exposed_s >= 0);
        CHECK(outcome.exchange.imbalance_s >= 0);
        CHECK(reference.step().loss_sum == expected.loss_sum);
        compare(ours, waiting, step);
    }
    ours.engine().whole();
    CHECK(same_bits(ours.model(), waiting.model()));
    CHECK(same_bits(ours.model(), reference.model()));
}

/// A pass, which gives back what it has read.
void read_all(Training& training) {
    training.engine().lend([&] {
        for (auto const& parameter : training.model().parameters()) {
            parameter.sum();
        }
    });
}

config::Model const wide_mlp{"mlp", {{"hidden", "300, 200, 90"}, {"dropout", "0.3"}}};
config::Model const cnn{"cnn", {{"channels", "13, 25"}, {"hidden", "70"}, {"dropout", "0.2"}}};

} // namespace

TEST_CASE("steps that follow each other have the bits of those that wait for all parameters") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    for (auto const& model : {wide_mlp, cnn}) {
        for (int const ranks_per_host : {1, 2}) {
            for (bool const accumulates : {false, true}) {
                CAPTURE(model.name, ranks_per_host, accumulates);
                auto deck = deck_with(model);
                deck.optimizer.accumulate = accumulates ? 2 : 1;
                deck.optimizer.clip_norm = accumulates ? 0.5 : 0;
                deck.optimizer.ema = 0.9;
                deck.precision.gradient_checkpointing = accumulates == (ranks_per_host == 1);
                require_same(set.get(), deck, ranks_per_host, 8);
            }
        }
    }
}

TEST_CASE("neither what travels nor what updates makes a difference to steps that follow") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    for (std::string const variant : {"bf16", "fp16", "replicated", "dp", "lamb", "prune"}) {
        CAPTURE(variant);
        auto deck = deck_with(wide_mlp);
        if (variant == "bf16") {
            deck.precision.compute = "bf16";
            deck.communication.compression = "bf16";
        } else if (variant == "fp16") {
            deck.precision.compute = "fp16";
            deck.precision.loss_scale = "1024";
        } else if (variant == "replicated") {
            deck.optimizer.update = "replicated";
        } else if (variant == "dp") {
            deck.run.mode = "dp";
        } else if (variant == "lamb") {
            deck.optimizer.name = "lamb";
        } else {
            deck.prune = {.pattern = "unstructured", .begin = 2, .end = 4, .every = 1};
        }
        require_same(set.get(), deck, 1, 6);
    }
}

TEST_CASE("what ranks hold only of their own shards makes no difference") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    for (std::string const update : {"sharded-gradients", "fully-sharded"}) {
        for (auto const& model : {wide_mlp, cnn}) {
            for (int const ranks_per_host : {1, 2, 4}) {
                for (bool const accumulates : {false, true}) {
                    CAPTURE(update, model.name, ranks_per_host, accumulates);
                    auto deck = deck_with(model);
                    deck.optimizer.accumulate = accumulates ? 2 : 1;
                    deck.optimizer.clip_norm = accumulates ? 0.5 : 0;
                    deck.precision.gradient_checkpointing = accumulates == (ranks_per_host == 1);
                    auto sharded = deck;
                    sharded.optimizer.update = update;
                    Training ours(world(), set.get(), sharded, ranks_per_host);
                    Training waiting(world(), set.get(), deck, ranks_per_host);
                    for (int step = 0; step < 6; ++step) {
                        CAPTURE(step);
                        auto const outcome = ours.step(0.05, true);
                        auto const expected = waiting.step();
                        CHECK(outcome.loss_sum == expected.loss_sum);
                        CHECK(outcome.grad_norm == expected.grad_norm);
                        if (step % 3 == 1) {
                            ours.engine().whole();
                            CHECK(same_bits(ours.model(), waiting.model()));
                            read_all(ours);
                            ours.engine().whole();
                            CHECK(same_bits(ours.model(), waiting.model()));
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("a step that is skipped, and one after it, have all parameters") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    auto deck = deck_with(wide_mlp);
    deck.precision.compute = "fp16";
    Training ours(world(), set.get(), deck, 1);
    Training waiting(world(), set.get(), deck, 1);
    for (auto* const training : {&ours, &waiting}) {
        training->engine().loss_scale().restore(std::ldexp(1.0, 18), 0, 0); // too large at first
    }
    bool skipped = false;
    for (int step = 0; step < 8; ++step) {
        CAPTURE(step);
        auto const outcome = ours.step(0.05, true);
        CHECK(outcome.skipped == waiting.step().skipped);
        skipped = skipped || outcome.skipped;
    }
    CHECK(skipped);
    ours.engine().whole();
    CHECK(same_bits(ours.model(), waiting.model()));
}

TEST_CASE("a training that ends while parameters are on their way leaves nothing behind") {
    train::configure_torch(config::Run{});
    SharedSet const set(world());
    for (int run = 0; run < 3; ++run) {
        Training(world(), set.get(), deck_with(wide_mlp), 1).step(0.05, true);
    }
    require_same(set.get(), deck_with(wide_mlp), 1, 2);
}
