#include "comm/collectives.hpp"
#include "comm/native.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/comm/communicator.hpp"

#include <array>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "world.hpp"

using namespace lockstep;

static_assert(!std::is_copy_constructible_v<comm::Communicator>);
static_assert(!std::is_copy_assignable_v<comm::Communicator>);
static_assert(std::is_nothrow_move_constructible_v<comm::Communicator>);
static_assert(std::is_nothrow_move_assignable_v<comm::Communicator>);

TEST_CASE("a duplicate has the same ranks and a message space of its own") {
    auto const& world = test::world();
    auto const copy = world.duplicate();
    CHECK(copy.rank() == world.rank());
    CHECK(copy.size() == world.size());
    CHECK(copy.is_root() == (world.rank() == 0));
    int relation = MPI_UNEQUAL;
    comm::check(MPI_Comm_compare(comm::raw(world), comm::raw(copy), &relation), "MPI_Comm_compare");
    CHECK(relation == MPI_CONGRUENT);
}

TEST_CASE("MPI's own errors come back as error 69 that names the call and the place") {
    auto const& world = test::world();
    int value = 0;
    std::string message;
    ExitCode code = ExitCode::ok;
    try {
        // A rank that does not exist: found before anything is sent.
        comm::broadcast(world, std::span(&value, 1), world.size() + 3);
    } catch (Error const& error) {
        message = error.what();
        code = error.code();
    }
    CHECK(code == ExitCode::unavailable);
    CHECK(message.find("MPI_Bcast") != std::string::npos);
    CHECK(message.find(".cpp:") != std::string::npos);
}

TEST_CASE("moving hands the handle over, and it still works") {
    auto first = test::world().duplicate();
    auto const handle = comm::raw(first);
    comm::Communicator second(std::move(first));
    CHECK(comm::raw(second) == handle);
    auto third = comm::Communicator::self();
    third = std::move(second);
    CHECK(comm::raw(third) == handle);
    CHECK(third.size() == test::world().size());
    CHECK(comm::all_reduce(third, 1, comm::Reduce::sum) == test::world().size());
}

namespace {

int freed = 0;

extern "C" int count_freed(MPI_Comm, int, void*, void*) {
    ++freed;
    return MPI_SUCCESS;
}

/// Counts from 0 how many of these are freed.
void count(std::vector<comm::Communicator> const& communicators) {
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_freed, &key, nullptr);
    for (auto const& each : communicators) {
        MPI_Comm_set_attr(comm::raw(each), key, nullptr);
    }
    MPI_Comm_free_keyval(&key);
    freed = 0;
}

void unwind(std::vector<comm::Communicator> communicators) {
    count(communicators);
    try {
        auto const inside = std::move(communicators);
        throw 1;
    } catch (int) {
    }
}

} // namespace

TEST_CASE("a communicator that ends is freed with the next one made from its parent, if errors "
          "unwind it, too") {
    auto const& world = test::world();
    auto const made = [&] {
        std::vector<comm::Communicator> all;
        all.push_back(comm::Communicator::self());
        all.push_back(world.duplicate());
        all.push_back(world.split(world.rank()));
        all.push_back(world.split_by_host());
        return all;
    };
    int const shared = world.size() > 1 ? 2 : 0;
    unwind(made());
    CHECK(freed == 4 - shared); // of one rank: at once
    auto const next = world.split(0);
    CHECK(freed == 4);
    {
        auto const others = made();
        count(others);
    }
    CHECK(freed == 4 - shared);
    static_cast<void>(world.duplicate());
    CHECK(freed == 4);
}

TEST_CASE("what was made from a communicator that has ended is freed with it, in any order") {
    auto const& world = test::world();
    std::vector<comm::Communicator> all;
    all.push_back(world.duplicate());
    all.push_back(all[0].duplicate());
    all.push_back(all[1].duplicate());
    count(all);
    int const own = world.size() > 1 ? 0 : 1;
    all.erase(all.begin()); // before those made from it
    CHECK(freed == own);
    all.clear();
    CHECK(freed == 3 * own);
    static_cast<void>(world.duplicate());
    CHECK(freed == 3);
}

TEST_CASE("free() frees what was made from a communicator and has ended") {
    std::vector<comm::Communicator> all;
    all.push_back(test::world().duplicate());
    all.push_back(all[0].duplicate());
    count(all);
    all.pop_back();
    all[0].free();
    CHECK(freed == 2);
    all.clear();
    CHECK(freed == 2);
}

TEST_CASE("parts of the world come and go more often than MPI has communicators at a time") {
    auto const& world = test::world();
    std::vector<int> const alone{world.rank()};
    std::vector<int> all(static_cast<std::size_t>(world.size()));
    std::iota(all.begin(), all.end(), 0);
    // As trials of a search that errors end: MPICH has about 2,000 communicators.
    for (int trial = 0; trial < 2500; ++trial) {
        bool const is_alone = trial % 250 != 0; // all together take their time on few cores
        auto part = world.part(is_alone ? alone : all, trial);
        try {
            auto const of_writer = part.duplicate();
            auto const of_host = part.split_by_host();
            throw trial;
        } catch (int) {
        }
        if (!is_alone) { // else its end frees it
            part.free();
        }
    }
    CHECK(comm::all_reduce(world, 1, comm::Reduce::sum) == world.size());
}

TEST_CASE("self is this process alone") {
    auto const self = comm::Communicator::self();
    CHECK(self.rank() == 0);
    CHECK(self.size() == 1);
    CHECK(comm::all_reduce(self, test::world().rank(), comm::Reduce::sum) == test::world().rank());
}
