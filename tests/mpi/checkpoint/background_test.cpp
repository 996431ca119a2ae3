#include "checkpoint/background_writer.hpp"
#include "checkpoint/reader.hpp"
#include "comm/collectives.hpp"
#include "comm/heartbeats.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <sys/resource.h>
#include <thread>

#include "../../unit/checkpoint/state.hpp"
#include "catch.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;
using checkpoint::BackgroundWriter;
using checkpoint::Store;

namespace {

checkpoint::Snapshot part_of(test::State const& state) {
    return state.snapshot(test::world().rank(), test::world().size());
}

} // namespace

TEST_CASE("what is written is the state at the start, whatever training does meanwhile") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    Store const store(scratch / "checkpoints", 5);
    test::State state(400'000);
    BackgroundWriter writer(world);
    writer.reserve(part_of(state));
    CHECK_FALSE(writer.poll().has_value());
    for (std::int64_t step = 1; step <= 3; ++step) {
        auto const before = state.parameters;
        state.record.integers["step"] = step;
        writer.start(part_of(state), store, step, "1");
        // The next step: other values in the same memory, and messages between the ranks.
        for (auto& value : state.parameters) {
            value += 1;
        }
        for (int i = 0; i < 100; ++i) {
            CHECK(comm::all_reduce(world, 1, comm::Reduce::sum) == world.size());
        }
        auto const outcome = writer.wait();
        CHECK((outcome && outcome->step == step && outcome->written));
        CHECK_FALSE(writer.wait().has_value());
        CHECK(checkpoint::verify(store.path_for(step)).empty());
        checkpoint::Reader const reader(store.path_for(step));
        CHECK(test::read_whole<float>(reader, "state/parameters") == before);
    }
    CHECK(store.list().size() == 3);
}

TEST_CASE("the end of a write is noticed without waiting, and a second one is refused before") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    Store const store(scratch / "checkpoints", 5);
    test::State const state(1000);
    BackgroundWriter writer(world);
    writer.start(part_of(state), store, 1, "1");
    CHECK_THROWS_AS(writer.start(part_of(state), store, 2, "1"), Error);
    std::optional<checkpoint::Outcome> outcome;
    while (!outcome) {
        outcome = writer.poll();
    }
    CHECK(outcome->written.has_value());
    writer.start(part_of(state), store, 2, "1");
    CHECK(writer.wait().has_value());
}

TEST_CASE("who gives a writer up waits for its write") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    Store const store(scratch / "checkpoints", 5);
    test::State const state(400'000);
    ::setenv("LOCKSTEP_INJECT", "slow-disk", 1);
    std::make_unique<BackgroundWriter>(world)->start(part_of(state), store, 1, "1");
    ::unsetenv("LOCKSTEP_INJECT");
    CHECK(checkpoint::verify(store.path_for(1)).empty());
    CHECK_FALSE(world.heartbeats()->others_speak());
}

TEST_CASE("an error of all ranks waits for the write: HDF5 is free afterwards") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    Store const store(scratch / "checkpoints", 5);
    test::State const state(400'000);
    ::setenv("LOCKSTEP_INJECT", "slow-disk", 1);
    try {
        BackgroundWriter writer(world);
        writer.start(part_of(state), store, 1, "1");
        throw Error(ExitCode::memory, {"of all ranks", "a test", "none"});
    } catch (Error const&) {
        CHECK_FALSE(world.heartbeats()->others_speak());
    }
    ::unsetenv("LOCKSTEP_INJECT");
    CHECK(checkpoint::verify(store.path_for(1)).empty());
}

TEST_CASE("a rank that fails alone does not wait, and its session knows that a thread speaks") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    Store const store(scratch / "checkpoints", 5);
    test::State const state(400'000);
    ::setenv("LOCKSTEP_INJECT", "slow-disk", 1);
    {
        BackgroundWriter writer(world);
        writer.start(part_of(state), store, 1, "1");
        writer.abandon();
    }
    {
        // Alone it does wait: nobody else could hold the write up, and what follows may use HDF5.
        CHECK(world.heartbeats()->others_speak() == (world.size() > 1));
    }
    while (world.heartbeats()->others_speak()) { // here all ranks fail alike, and so the write ends
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ::unsetenv("LOCKSTEP_INJECT");
    comm::barrier(world); // the file is there
    CHECK(checkpoint::verify(store.path_for(1)).empty());
}

// Hidden: the session aborts the job.
TEST_CASE("MPI does not end under a thread that still writes", "[.abort]") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    auto const held = std::make_shared<std::atomic<bool>>(false);
    Store const store(scratch / "checkpoints", 5,
                      [held] { // on rank 0, before the checkpoint is there
                          held->store(true);
                          held->notify_all();
                          std::this_thread::sleep_for(std::chrono::hours(1));
                      });
    try {
        BackgroundWriter writer(world);
        writer.start(part_of(test::State(1000)), store, 1, "1");
        if (world.is_root()) {
            held->wait(false);
        }
        writer.abandon();
        throw Error(ExitCode::software, {"of this rank", "a test", "none"});
    } catch (Error const&) {
        CHECK(world.heartbeats()->others_speak());
    }
}

TEST_CASE("a write that fails is the same failure on all ranks, and the next one works") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    Store const store(scratch / "checkpoints", 5);
    BackgroundWriter writer(world);
    writer.start(part_of(test::State(1000)), store, 1, "1");
    CHECK(writer.wait().has_value());
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit const limit{300'000, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    writer.start(part_of(test::State(200'000)), store, 2, "1");
    auto const outcome = writer.wait();
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK((outcome && outcome->failure && outcome->failure->code() == ExitCode::io));
    auto const text = outcome && outcome->failure ? outcome->failure->cause() : "none";
    for (auto const& other : comm::all_gather_text(world, text)) {
        CHECK(other == text);
    }
    CHECK(store.list().size() == 1);
    CHECK_FALSE(std::filesystem::exists(checkpoint::partial_path(store.path_for(2), "1")));
    writer.start(part_of(test::State(200'000)), store, 3, "1");
    auto const next = writer.wait();
    CHECK((next && next->written));
}
