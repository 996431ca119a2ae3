#include "base/clock.hpp"
#include "base/file.hpp"
#include "checkpoint/writer.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <sys/mount.h>

#include "../../unit/checkpoint/state.hpp"
#include "catch.hpp"
#include "file_size_limit.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;

namespace {

std::optional<AgreedError> failure_of(std::function<void()> const& work) {
    try {
        work();
    } catch (AgreedError const& error) {
        return error;
    }
    return std::nullopt;
}

/// Whether every rank threw, and all the same.
bool all_failed_alike(std::optional<AgreedError> const& error) {
    auto const text = error ? error->cause() + error->what() : "";
    auto const texts = comm::all_gather_text(test::world(), text);
    bool alike = error.has_value();
    for (auto const& other : texts) {
        alike = alike && other == text;
    }
    return comm::all_ranks(test::world(), alike);
}

checkpoint::Snapshot part_of_this_rank(test::State const& state) {
    return state.snapshot(test::world().rank(), test::world().size());
}

/// That a write with `attempt` "2" fails alike on all ranks with `code`, leaves nothing behind and
/// the checkpoint that was there as it was. The failing rank is returned.
int expect_failure(checkpoint::Snapshot const& snapshot, std::filesystem::path const& path,
                   ExitCode code) {
    auto const error = failure_of([&] { checkpoint::write(test::world(), snapshot, path, "2"); });
    CHECK(all_failed_alike(error));
    comm::barrier(test::world()); // rank 0 has removed the partial file
    CHECK_FALSE(std::filesystem::exists(checkpoint::partial_path(path, "2")));
    CHECK((error && error->code() == code));
    return error ? error->rank() : -1;
}

/// A file system of 1 MiB of its own; none where mounting is not permitted.
class SmallDisk {
  public:
    explicit SmallDisk(std::filesystem::path const& directory) : directory_(directory) {
        bool mounted = false;
        if (test::world().is_root()) {
            std::filesystem::create_directory(directory);
            mounted = ::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=1M") == 0;
        }
        there_ = !comm::all_ranks(test::world(), test::world().is_root() ? !mounted : true);
    }
    SmallDisk(SmallDisk const&) = delete;
    SmallDisk& operator=(SmallDisk const&) = delete;
    ~SmallDisk() {
        comm::barrier(test::world()); // nobody still has a file open there
        if (there_ && test::world().is_root()) {
            ::umount2(directory_.c_str(), MNT_DETACH);
        }
    }
    bool there() const { return there_; }

  private:
    std::filesystem::path directory_;
    bool there_ = false;
};

} // namespace

TEST_CASE("parts that do not tile an array are refused before anything is written") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    test::State const state(1000);
    bool const last = world.rank() == world.size() - 1;

    auto gap = part_of_this_rank(state);
    if (world.is_root()) {
        auto& last = gap.parts[0].back().bytes;
        last = last.first(last.size() - 4);
    }
    expect_failure(gap, scratch / "c.h5", ExitCode::software);

    auto beyond = part_of_this_rank(state);
    if (last) {
        beyond.parts[1].resize(1);
        beyond.parts[1][0].first = 999;
        beyond.parts[1][0].bytes = std::as_bytes(std::span(state.moments).first(2));
    }
    CHECK(expect_failure(beyond, scratch / "c.h5", ExitCode::software) == world.size() - 1);

    auto ragged = part_of_this_rank(state);
    if (last) {
        ragged.parts[0] = {{0, std::as_bytes(std::span(state.parameters)).first(3)}};
    }
    CHECK(expect_failure(ragged, scratch / "c.h5", ExitCode::software) == world.size() - 1);

    auto missing = part_of_this_rank(state);
    if (last) {
        missing.parts.pop_back();
    }
    CHECK(expect_failure(missing, scratch / "c.h5", ExitCode::software) == world.size() - 1);
}

TEST_CASE("ranks that disagree on the arrays are refused") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    auto snapshot = part_of_this_rank(test::State(1000));
    if (world.rank() == world.size() - 1 && world.size() > 1) {
        snapshot.views.pop_back();
        CHECK(expect_failure(snapshot, scratch / "c.h5", ExitCode::software) == world.size() - 1);
    } else if (world.size() > 1) {
        CHECK(expect_failure(snapshot, scratch / "c.h5", ExitCode::software) == world.size() - 1);
    } else {
        snapshot.views[0].source = "state/none";
        CHECK(expect_failure(snapshot, scratch / "c.h5", ExitCode::software) == 0);
    }
}

TEST_CASE("a rank that does not see the file fails all, and the old checkpoint stays") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    auto const elsewhere = scratch / "elsewhere";
    test::State const state(1000);
    auto const home = std::filesystem::current_path();
    bool const strays = world.rank() == world.size() - 1 && world.size() > 1;
    comm::agree(world, "make directory", [&] {
        if (world.is_root()) {
            std::filesystem::create_directory(elsewhere);
        }
    });
    checkpoint::write(world, part_of_this_rank(state), scratch / "c.h5", "1");
    auto const before = std::filesystem::last_write_time(scratch / "c.h5");
    // As on a host without the shared directory.
    std::filesystem::current_path(strays ? elsewhere : scratch.path());
    auto const error =
        failure_of([&] { checkpoint::write(world, part_of_this_rank(state), "c.h5", "2"); });
    std::filesystem::current_path(home);
    if (world.size() > 1) {
        CHECK(all_failed_alike(error));
        CHECK((error && error->rank() == world.size() - 1));
        comm::barrier(world); // rank 0 has removed the partial file
        CHECK(std::filesystem::last_write_time(scratch / "c.h5") == before);
    } else {
        CHECK_FALSE(error.has_value());
    }
    CHECK_FALSE(std::filesystem::exists(scratch / "c.h5.partial-2"));
    CHECK(checkpoint::verify(scratch / "c.h5").empty());
}

TEST_CASE("a rank that sees another file of that name fails all") {
    auto const& world = test::world();
    if (world.size() == 1) {
        return; // it would be the file that it makes itself
    }
    test::ScratchDir const scratch(world);
    auto const elsewhere = scratch / "elsewhere";
    comm::agree(world, "make another", [&] {
        if (world.is_root()) {
            std::filesystem::create_directory(elsewhere);
            write_text_durably(elsewhere / "c.h5.partial-2", "of an earlier time");
        }
    });
    auto const home = std::filesystem::current_path();
    bool const strays = world.rank() == world.size() - 1;
    std::filesystem::current_path(strays ? elsewhere : scratch.path());
    auto const error = failure_of(
        [&] { checkpoint::write(world, part_of_this_rank(test::State(1000)), "c.h5", "2"); });
    std::filesystem::current_path(home);
    CHECK(all_failed_alike(error));
    CHECK((error && error->code() == ExitCode::io && error->rank() == world.size() - 1));
    comm::barrier(world); // rank 0 has removed the partial file
    CHECK_FALSE(std::filesystem::exists(scratch / "c.h5.partial-2"));
}

TEST_CASE("a directory that is not there is 73 on all ranks") {
    test::ScratchDir const scratch(test::world());
    auto const error = failure_of([&] {
        checkpoint::write(test::world(), part_of_this_rank(test::State(1000)), scratch / "no/c.h5",
                          "2");
    });
    CHECK(all_failed_alike(error));
    CHECK((error && (error->code() == ExitCode::cannot_create)));
}

TEST_CASE("a full disk is 74 at once; the old checkpoint stays, the partial file goes") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    SmallDisk const disk(scratch / "disk");
    if (!disk.there()) {
        WARN("SKIPPED: mounting a small disk is not permitted here");
        return;
    }
    auto const path = scratch / "disk" / "c.h5";
    checkpoint::write(world, part_of_this_rank(test::State(5000)), path, "1");
    auto const before = std::filesystem::file_size(path);
    Stopwatch const watch;
    expect_failure(part_of_this_rank(test::State(200'000)), path, ExitCode::io);
    CHECK(watch.seconds() < 5);
    CHECK(std::filesystem::file_size(path) == before);
    CHECK(checkpoint::verify(path).empty());
    // And one that just fits still works.
    CHECK_NOTHROW(checkpoint::write(world, part_of_this_rank(test::State(40'000)), path, "3"));
    CHECK(checkpoint::verify(path).empty());
}

TEST_CASE("space that cannot be claimed is 74 before any data is written") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    auto const path = scratch / "c.h5";
    checkpoint::write(world, part_of_this_rank(test::State(5000)), path, "1");
    {
        test::FileSizeLimit const limit(300'000);
        Stopwatch const watch;
        expect_failure(part_of_this_rank(test::State(200'000)), path, ExitCode::io);
        CHECK(watch.seconds() < 5);
    }
    CHECK(checkpoint::verify(path).empty());
    CHECK_NOTHROW(checkpoint::write(world, part_of_this_rank(test::State(200'000)), path, "3"));
    CHECK(checkpoint::verify(path).empty());
}

TEST_CASE(
    "a rank whose writes are refused fails all, with the reason, and none waits for another") {
    auto const& world = test::world();
    if (world.size() == 1) {
        return; // it would be refused before ranks write together
    }
    test::ScratchDir const scratch(world);
    auto const path = scratch / "c.h5";
    checkpoint::write(world, part_of_this_rank(test::State(5000)), path, "1");
    bool const last = world.rank() == world.size() - 1;
    test::State const state(200'000);
    // The other way round: the last rank holds what the first does elsewhere, which is not nothing.
    auto const snapshot = state.snapshot(world.size() - 1 - world.rank(), world.size());
    std::optional<AgreedError> error;
    {
        std::optional<test::FileSizeLimit> limit;
        if (last) {
            limit.emplace(1);
        }
        error = failure_of([&] { checkpoint::write(world, snapshot, path, "2"); });
    }
    CHECK(all_failed_alike(error));
    CHECK((error && error->code() == ExitCode::io && error->rank() == world.size() - 1));
    CHECK((error && error->text().why == std::strerror(EFBIG)));
    CHECK(checkpoint::verify(path).empty());
    CHECK_NOTHROW(checkpoint::write(world, snapshot, path, "3"));
    CHECK(checkpoint::verify(path).empty());
}
