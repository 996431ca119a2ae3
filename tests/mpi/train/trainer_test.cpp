// A run in the hands of its caller: who leaves it leaves nothing of it under way.

#include "checkpoint/store.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"
#include "lockstep/train/trainer.hpp"

#include <chrono>
#include <cstdlib>

#include "catch.hpp"
#include "training.hpp"

using namespace lockstep;
using namespace lockstep::test;

TEST_CASE("a Trainer that is given up, or fails to validate, waits for its checkpoint") {
    SignalRequests const signals;
    for (bool const fails : {false, true}) {
        CAPTURE(fails);
        ScratchDir const scratch(world());
        comm::agree(world(), "writing the sets", [&] {
            if (world().is_root()) {
                write_set(scratch / "train.h5");
                write_set(scratch / "validation.h5");
            }
        });
        auto deck = deck_with({.name = "mlp"});
        deck.run.directory = (scratch / "run").string();
        deck.data.train = (scratch / "train.h5").string();
        deck.data.validation = (scratch / "validation.h5").string();
        deck.train.epochs = 2;
        deck.train.validate_every = 100;
        deck.checkpoint.every_steps = 4; // of 5 in an epoch
        checkpoint::Store const store(scratch / "run/checkpoints", 9);
        ::setenv("LOCKSTEP_INJECT", "slow-disk", 1);
        {
            auto const nobody = [](config::Deck const&) {
                return std::vector<std::unique_ptr<train::Observer>>();
            };
            train::Trainer trainer(
                world(), {.deck = deck, .version = "a test", .observers = nobody}, signals);
            CHECK(trainer.train_epoch());
            CHECK(trainer.step() == 5);
            if (fails) {
                comm::agree(world(), "changing a set", [&] {
                    if (world().is_root()) {
                        std::filesystem::last_write_time(
                            scratch / "validation.h5",
                            std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
                    }
                });
                CHECK_THROWS_AS(trainer.validate(), AgreedError);
                CHECK(std::filesystem::exists(store.path_for(4)));
            }
        }
        ::unsetenv("LOCKSTEP_INJECT");
        CHECK_FALSE(world().heartbeats()->others_speak());
        CHECK(checkpoint::verify(store.path_for(4)).empty());
    }
}
