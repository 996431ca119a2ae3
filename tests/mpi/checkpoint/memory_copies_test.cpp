#include "checkpoint/memory_copies.hpp"
#include "checkpoint/memory_state.hpp"
#include "comm/collectives.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <sys/stat.h>

#include "../../unit/checkpoint/state.hpp"
#include "catch.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;
using checkpoint::MemoryCopies;
using checkpoint::MemoryState;

namespace {

constexpr std::uint64_t run = 7;
constexpr std::uint64_t job = 8;

/// Ranks that are hosts of their own, each with its own memory, made of a directory.
class Fleet {
  public:
    Fleet() : scratch_(test::world()) {
        std::filesystem::create_directory(place(test::world().rank()));
        comm::barrier(test::world()); // others look into it
    }

    std::filesystem::path place(int rank) const { return scratch_ / std::to_string(rank); }

    MemoryCopies::Setup setup(std::uint64_t attempt = 1) const {
        return {.run = run,
                .job = job,
                .attempt = attempt,
                .directory = place(test::world().rank()),
                .layout = comm::HostLayout::of_neighbours(1)};
    }
    std::shared_ptr<MemoryState> find(std::int64_t after = -1, std::uint64_t of_job = job) const {
        comm::barrier(test::world()); // after what the others have done to their files
        return MemoryState::find(test::world(), {.run = run,
                                                 .job = of_job,
                                                 .after = after,
                                                 .directory = place(test::world().rank()),
                                                 .layout = comm::HostLayout::of_neighbours(1)});
    }

    /// Calls `change` with the path of each of this host's copies of a step.
    void each_copy(std::int64_t step,
                   std::function<void(checkpoint::StoredCopy const&)> const& change) const {
        for (auto const& copy : checkpoint::list_copies(place(test::world().rank()), run)) {
            if (copy.header.step == step) {
                change(copy);
            }
        }
    }

  private:
    test::ScratchDir scratch_;
};

checkpoint::Snapshot parts_of_rank(test::State const& state) {
    return state.snapshot(test::world().rank(), test::world().size());
}

test::State state_at(std::int64_t step, std::size_t size = 5000) {
    test::State state(size);
    state.parameters[17] = static_cast<float>(step);
    state.record.integers["step"] = step;
    return state;
}

/// Copies a step, to the end, on all ranks.
void copy(MemoryCopies& copies, std::int64_t step) {
    copies.begin(parts_of_rank(state_at(step)), step);
    copies.settle(60);
    CHECK_FALSE(copies.is_busy());
    CHECK_FALSE(copies.has_failed());
    comm::barrier(test::world()); // all ranks' sums say so in a run
}

void check_is(std::shared_ptr<MemoryState> const& found, std::int64_t step) {
    REQUIRE(found);
    CHECK(found->step() == step);
    auto const expected = state_at(step);
    auto const& reader = *found->reader();
    CHECK((test::read_whole<float>(reader, "state/parameters") == expected.parameters));
    CHECK((test::read_whole<double>(reader, "state/moments") == expected.moments));
    CHECK((test::read_whole<std::int64_t>(reader, "state/counters") == expected.counters));
    CHECK(reader.record() == expected.record);
    CHECK(reader.views().size() == 3);
    found->close();
}

void flip(checkpoint::StoredCopy const& copy) {
    std::fstream file(copy.path, std::ios::in | std::ios::out | std::ios::binary);
    auto const place = static_cast<std::streamoff>(checkpoint::copy_header_bytes +
                                                   copy.header.content_bytes() / 2);
    file.seekg(place);
    auto const value = static_cast<char>(file.get() ^ 0x10);
    file.seekp(place);
    file.put(value);
}

} // namespace

TEST_CASE("the newest copy is what the ranks had, and the one before is there, too") {
    Fleet const fleet;
    CHECK_FALSE(fleet.find());
    {
        MemoryCopies copies(test::world(), fleet.setup(), parts_of_rank(state_at(1)));
        CHECK_FALSE(fleet.find()); // files without a copy
        for (std::int64_t step = 3; step <= 5; ++step) {
            copy(copies, step);
        }
    }
    check_is(fleet.find(), 5);
    check_is(fleet.find(4), 5);
    CHECK_FALSE(fleet.find(5));
    CHECK_FALSE(fleet.find(-1, job + 1));
    fleet.each_copy(5, [](auto const& each) { std::filesystem::remove(each.path); });
    check_is(fleet.find(), 4);
}

TEST_CASE("each host may be lost, and its parts come from the next one") {
    Fleet const fleet;
    auto const& world = test::world();
    {
        MemoryCopies copies(world, fleet.setup(), parts_of_rank(state_at(1)));
        copy(copies, 2);
        copy(copies, 3);
    }
    // The lost host's rank has started again, with an empty memory.
    if (world.rank() == world.size() / 2) {
        checkpoint::remove_copies(fleet.place(world.rank()), run);
    }
    if (world.size() > 1) {
        check_is(fleet.find(), 3);
    } else {
        CHECK_FALSE(fleet.find());
    }
    if (world.rank() == (world.size() / 2 + 1) % world.size()) { // the only one that has its parts
        checkpoint::remove_copies(fleet.place(world.rank()), run);
    }
    CHECK_FALSE(fleet.find());
}

TEST_CASE("damaged copies are not used: another host's is, or the step before") {
    Fleet const fleet;
    auto const& world = test::world();
    {
        MemoryCopies copies(world, fleet.setup(), parts_of_rank(state_at(1)));
        copy(copies, 2);
        copy(copies, 3);
    }
    auto const damage = [&](int host) {
        fleet.each_copy(3, [&](auto const& each) {
            if (world.rank() == host && each.header.rank == 0) {
                flip(each);
            }
        });
    };
    damage(0);
    check_is(fleet.find(), world.size() > 1 ? 3 : 2);
    damage(1);
    check_is(fleet.find(), 2);
    fleet.each_copy(2, [](auto const& each) { // half of a write
        std::filesystem::resize_file(each.path, checkpoint::copy_header_bytes + 100);
    });
    CHECK_FALSE(fleet.find());
}

TEST_CASE("files that others may write to are not copies") {
    Fleet const fleet;
    {
        MemoryCopies copies(test::world(), fleet.setup(), parts_of_rank(state_at(1)));
        copy(copies, 2);
    }
    fleet.each_copy(2, [](auto const& each) { ::chmod(each.path.c_str(), 0622); });
    CHECK_FALSE(fleet.find());
    checkpoint::remove_copies(fleet.place(test::world().rank()), run); // they are this user's
    CHECK(std::filesystem::is_empty(fleet.place(test::world().rank())));
}

TEST_CASE("copies of two attempts are not mixed, and the older ones go when they are told to") {
    Fleet const fleet;
    {
        MemoryCopies first(test::world(), fleet.setup(1), parts_of_rank(state_at(1)));
        copy(first, 9);
        MemoryCopies second(test::world(), fleet.setup(2), parts_of_rank(state_at(1)));
        copy(second, 8);
        if (test::world().rank() == 0) {
            fleet.each_copy(9, [](auto const& each) {
                if (each.header.rank == 0) {
                    std::filesystem::remove(each.path);
                }
            });
        }
        check_is(fleet.find(), test::world().size() > 1 ? 9 : 8);
        second.remove_older();
        check_is(fleet.find(), 8);
        copy(second, 10);
        checkpoint::remove_copies(fleet.place(test::world().rank()), run, {.step = 8});
        check_is(fleet.find(), 8);
    }
    checkpoint::remove_copies(fleet.place(test::world().rank()), run);
    CHECK(std::filesystem::is_empty(fleet.place(test::world().rank())));
}

TEST_CASE("a state that has grown finds room") {
    Fleet const fleet;
    auto const& world = test::world();
    MemoryCopies copies(world, fleet.setup(), parts_of_rank(state_at(1, 2000)));
    auto large = state_at(4, 800'000);
    copies.begin(parts_of_rank(large), 4);
    copies.settle(60);
    CHECK_FALSE(copies.has_failed());
    auto const found = fleet.find();
    REQUIRE(found);
    CHECK((test::read_whole<float>(*found->reader(), "state/parameters") == large.parameters));
    found->close();
}
