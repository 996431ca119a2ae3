#include "base/file.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/base/error.hpp"

#include "catch.hpp"
#include "scratch_dir.hpp"
#include "state.hpp"

using namespace lockstep;
using checkpoint::Store;

namespace {

std::vector<std::int64_t> steps_in(Store const& store) {
    std::vector<std::int64_t> steps;
    for (auto const& entry : store.list()) {
        steps.push_back(entry.step);
    }
    return steps;
}

void save(Store const& store, std::int64_t step) {
    auto const self = comm::Communicator::self();
    test::State state(200);
    state.record.integers["step"] = step;
    store.save(self, state.snapshot(), step, "1");
}

void damage(Store const& store, std::int64_t step) {
    auto const path = store.path_for(step);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
}

} // namespace

TEST_CASE("checkpoints are named by step and listed newest first, nothing else is") {
    test::ScratchDir const scratch;
    Store const store(scratch / "checkpoints", 3);
    CHECK(store.list().empty());
    CHECK(store.path_for(1200).filename() == "step-00001200.h5");
    CHECK(store.path_for(1234567890).filename() == "step-1234567890.h5");
    make_directories(store.directory());
    for (auto const* name : {"step-00000010.h5", "step-00000002.h5", "step-1234567890.h5",
                             "step-3.h5", "step-00000004.h5.partial-1", "step-x.h5", "notes.txt"}) {
        write_text_durably(store.directory() / name, "x");
    }
    CHECK(steps_in(store) == std::vector<std::int64_t>{1234567890, 10, 2});
}

TEST_CASE("save keeps the newest, and the one that it wrote") {
    test::ScratchDir const scratch;
    Store const store(scratch / "checkpoints", 2);
    for (int const step : {0, 10, 20, 30}) {
        save(store, step);
    }
    CHECK(steps_in(store) == std::vector<std::int64_t>{30, 20});
    // Resumed from before 20, since 20 and 30 were damaged: 15 is the only good one.
    damage(store, 30);
    damage(store, 20);
    save(store, 15);
    CHECK(steps_in(store) == std::vector<std::int64_t>{30, 20, 15});
}

TEST_CASE("prune never removes the last good checkpoint") {
    test::ScratchDir const scratch;
    Store const store(scratch / "checkpoints", 9);
    for (int const step : {1, 2, 3, 4}) {
        save(store, step);
    }
    damage(store, 4);
    damage(store, 3);
    CHECK(store.prune(1) ==
          std::vector<std::filesystem::path>{store.path_for(3), store.path_for(1)});
    CHECK(steps_in(store) == std::vector<std::int64_t>{4, 2});
    damage(store, 2);
    CHECK_THROWS_AS(store.prune(1), Error); // none is good: none is removed
    CHECK(steps_in(store) == std::vector<std::int64_t>{4, 2});
    CHECK_THROWS_AS(store.prune(0), Error);
}
