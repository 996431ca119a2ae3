#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "comm/activity_scope.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/heartbeats.hpp"
#include "comm/phase.hpp"
#include "comm/phase_scope.hpp"
#include "comm/progress.hpp"
#include "comm/shared_block.hpp"
#include "comm/wait_scope.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "catch.hpp"
#include "world.hpp"

using namespace lockstep;
using comm::Phase;
using comm::Wait;

namespace {
comm::HeartbeatTable const& heartbeats() {
    return *test::world().heartbeats();
}
} // namespace

TEST_CASE("every rank of the host sees what the others are at") {
    auto const& world = test::world();
    comm::PhaseScope const phase(world, world.rank() == 0 ? Phase::checkpoint : Phase::data);
    comm::set_step(world, 10 + world.rank());
    comm::barrier(world); // all have written
    CHECK(heartbeats().size() == world.size());
    for (int rank = 0; rank < heartbeats().size(); ++rank) {
        auto const& slot = heartbeats().slot(rank);
        CHECK(slot.rank.load() == rank);
        CHECK(slot.step.load() == 10 + rank);
        CHECK(slot.phase.load() == (rank == 0 ? Phase::checkpoint : Phase::data));
    }
    CHECK(heartbeats().own().pid.load() == ::getpid());
    comm::barrier(world); // all have read
}

TEST_CASE("an exception is known by the innermost phase that it left, until it was survived") {
    auto const& world = test::world();
    comm::set_step(world, 12);
    auto const fail = [&] {
        comm::in_phase(world, Phase::validation,
                       [&] { comm::in_phase(world, Phase::data, [] { throw 1; }); });
    };
    CHECK_THROWS(fail());
    CHECK(heartbeats().failed_at().phase == Phase::data);
    CHECK(heartbeats().failed_at().step == 12);
    comm::PhaseScope const next(world, Phase::checkpoint);
    CHECK(heartbeats().failed_at().phase == Phase::checkpoint);
}

TEST_CASE("a scope gives back what was there before it, and counts as progress") {
    auto const& world = test::world();
    auto const& slot = heartbeats().own();
    auto const before = slot.phase.load();
    auto const progress = slot.progress.load();
    {
        comm::PhaseScope const outer(world, Phase::validation);
        {
            comm::PhaseScope const inner(world, Phase::checkpoint);
            comm::ActivityScope const activity(world, "removing old files");
            CHECK(slot.phase.load() == Phase::checkpoint);
            CHECK(slot.activity.text() == "removing old files");
        }
        CHECK(slot.phase.load() == Phase::validation);
        CHECK(slot.activity.text().empty());
    }
    CHECK(slot.phase.load() == before);
    CHECK(slot.progress.load() > progress);
}

TEST_CASE("collective calls of the whole job have the same number on all ranks") {
    auto const& world = test::world();
    if (world.is_root()) {
        comm::all_reduce(comm::Communicator::self(), 1, comm::Reduce::sum); // its own affair
    }
    comm::barrier(world);
    auto const counts =
        comm::all_gather(world, static_cast<std::int64_t>(heartbeats().own().collectives.load()));
    for (auto const count : counts) {
        CHECK(count == counts.front());
    }
    CHECK(heartbeats().own().wait.load() == Wait::nothing);
}

TEST_CASE("a rank that waits with a deadline is seen to wait") {
    auto const& world = test::world();
    std::array<double, 2> values{};
    std::array<std::byte, 2> bytes{};
    auto const calls = std::to_array<std::pair<Wait, std::function<void()>>>(
        {{Wait::barrier, [&] { comm::barrier_with_deadline(world, 60); }},
         {Wait::all_reduce, [&] { comm::sum_with_deadline(world, values, 60); }},
         {Wait::broadcast, [&] { comm::broadcast_with_deadline(world, bytes, 60); }}});
    for (auto const& [wait, call] : calls) {
        bool seen = true;
        if (world.is_root()) { // without which none of them ends
            for (int rank = 1; rank < heartbeats().size(); ++rank) {
                Stopwatch const watch;
                while (heartbeats().slot(rank).wait.load() != wait && watch.seconds() < 30) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
                seen = seen && heartbeats().slot(rank).wait.load() == wait;
            }
        }
        call();
        CHECK(seen);
        comm::barrier(world); // none is in the next call yet
    }
    CHECK(heartbeats().own().wait.load() == Wait::nothing);
}

TEST_CASE("another thread does not speak for the rank") {
    auto const& world = test::world();
    comm::PhaseScope const phase(world, Phase::data);
    std::thread([&] {
        comm::PhaseScope const other(world, Phase::checkpoint);
        comm::WaitScope const wait(world, Wait::file);
        CHECK(heartbeats().own().phase.load() == Phase::data);
        CHECK(heartbeats().own().wait.load() == Wait::nothing);
    }).join();
}

TEST_CASE("shared memory of others is left alone, whatever process number it is named by") {
    auto const& world = test::world();
    // As by a container that shares /dev/shm and has this process number, too.
    auto const name = concat("/lockstep-", ::getpid());
    Descriptor const theirs(::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600));
    CHECK(theirs.is_open());
    CHECK(::write(theirs.get(), "theirs", 6) == 6);
    comm::barrier(world); // all are there
    comm::SharedBlock const ours(world, 4096);
    struct stat info {};
    CHECK(::stat(concat("/dev/shm", name).c_str(), &info) == 0);
    CHECK(info.st_size == 6);
    CHECK(::shm_unlink(name.c_str()) == 0);
}

TEST_CASE("where one rank cannot map shared memory, none keeps it") {
    auto const& world = test::world();
    constexpr std::size_t bytes = std::size_t{64} << 20;
    auto const maps = [] {
        std::ifstream file("/proc/self/maps");
        std::string const text(std::istreambuf_iterator<char>(file), {});
        std::size_t count = 0;
        for (auto at = text.find("/dev/shm/lockstep-"); at != std::string::npos;
             at = text.find("/dev/shm/lockstep-", at + 1)) {
            ++count;
        }
        return count;
    };
    auto const before = maps();
    rlimit old{};
    CHECK(::getrlimit(RLIMIT_AS, &old) == 0);
    if (world.rank() == world.size() - 1) {
        // What is in use, and half of the block, which MPI itself may need.
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        auto const page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
        auto const tight = rlimit{pages * page + bytes / 2, old.rlim_max};
        CHECK(::setrlimit(RLIMIT_AS, &tight) == 0);
    }
    bool failed = false;
    try {
        comm::SharedBlock const block(world, bytes);
    } catch (AgreedError const& error) {
        failed = error.code() == ExitCode::unavailable;
    } catch (std::bad_alloc const&) { // of a rank that is alone
        failed = world.size() == 1;
    }
    CHECK(::setrlimit(RLIMIT_AS, &old) == 0);
    CHECK(comm::all_ranks(world, failed));
    CHECK(maps() == before);
}

TEST_CASE("one rank of the host tells the root cause") {
    auto const& world = test::world();
    comm::HeartbeatTable const fresh(world);
    int const first = fresh.claim(comm::HeartbeatTable::Ending::agreed) ? 1 : 0;
    CHECK(comm::all_reduce(world, first, comm::Reduce::sum) == 1);
    CHECK(fresh.ending() == comm::HeartbeatTable::Ending::agreed);
}
