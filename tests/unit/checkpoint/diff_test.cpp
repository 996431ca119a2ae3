#include "checkpoint/diff.hpp"
#include "checkpoint/writer.hpp"

#include <cmath>

#include "catch.hpp"
#include "scratch_dir.hpp"
#include "state.hpp"

using namespace lockstep;

namespace {

/// Compares the checkpoints of two states.
class Pair {
  public:
    checkpoint::Comparison diff(checkpoint::Snapshot const& a, checkpoint::Snapshot const& b) {
        auto const self = comm::Communicator::self();
        checkpoint::write(self, a, scratch_ / "a.h5", "1");
        checkpoint::write(self, b, scratch_ / "b.h5", "2");
        return checkpoint::diff(scratch_ / "a.h5", scratch_ / "b.h5");
    }

  private:
    test::ScratchDir scratch_;
};

} // namespace

TEST_CASE("equal states are identical, whatever the deck and the notes say") {
    test::State const a;
    test::State b;
    CHECK(Pair().diff(a.snapshot(), b.snapshot()).identical());
    b.record.deck += "epochs = 5\n";
    b.record.notes["time"] = "later";
    b.record.notes.insert({"attempt", "2"});
    auto const comparison = Pair().diff(a.snapshot(), b.snapshot());
    CHECK(comparison.identical());
    REQUIRE(comparison.records.size() == 3);
    CHECK(comparison.records[0].where == "deck");
    CHECK(comparison.records[0].what == "differs from line 3 on");
}

TEST_CASE("differing elements are told by view, first and number") {
    test::State const a(600'000); // several reads
    test::State b(600'000);
    b.parameters[3] += 1;
    b.parameters[159] = -b.parameters[159];
    b.parameters[162] = std::nextafter(b.parameters[162], 1e9F);
    b.parameters[500'000] += 1;
    b.counters[2] = 10;
    auto const state = Pair().diff(a.snapshot(), b.snapshot()).state;
    REQUIRE(state.size() == 4);
    CHECK(state[0].where == "model/conv1/weight");
    CHECK(state[0].what == "2 of 160 elements differ, the first at index 3");
    CHECK(state[1].where == "model/conv1/bias");
    CHECK(state[1].what == "1 of 8 elements differs, at index 2");
    CHECK(state[2].where == "state/parameters");
    CHECK(state[2].what == "1 of 600,000 elements differs, at index 500000");
    CHECK(state[3].where == "model/norm/batches");
}

TEST_CASE("numbers are compared by their bits") {
    test::State a;
    test::State b;
    a.moments[5] = 0.0;
    b.moments[5] = -0.0; // equal, but another state
    a.record.reals["zero"] = 0.0;
    b.record.reals["zero"] = -0.0;
    a.record.reals["nan"] = b.record.reals["nan"] = std::nan(""); // unequal, but the same state
    auto const state = Pair().diff(a.snapshot(), b.snapshot()).state;
    REQUIRE(state.size() == 2);
    CHECK(state[0].where == "state/moments");
    CHECK(state[1].where == "zero");
}

TEST_CASE("integers, history, missing values and other layouts are state") {
    test::State const a;
    test::State b;
    b.record.integers["step"] = 1201;
    b.record.integers.erase("seed");
    b.record.reals["extra"] = 1;
    b.record.history += "{}\n";
    auto other = b.snapshot();
    other.views[1].shape = {2, 4};
    other.arrays[3] = {"state/renamed", h5::Type::f32, 0};
    auto const state = Pair().diff(a.snapshot(), other).state;
    std::vector<std::string> where;
    for (auto const& difference : state) {
        where.push_back(difference.where);
    }
    CHECK(where == std::vector<std::string>{"state/nothing", "state/renamed", "model/conv1/bias",
                                            "seed", "step", "extra", "history"});
}
