#include "base/file.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/store.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <array>
#include <functional>
#include <sys/stat.h>

#include "../../unit/checkpoint/state.hpp"
#include "catch.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;
using checkpoint::Store;

namespace {

void save(Store const& store, std::int64_t step) {
    auto const& world = test::world();
    test::State state(40'000); // some blocks, so that each rank has its own to verify
    state.record.integers["step"] = step;
    store.save(world, state.snapshot(world.rank(), world.size()), step, "1");
}

void on_root(std::function<void()> const& work) {
    comm::agree(test::world(), "damage", [&] {
        if (test::world().is_root()) {
            work();
        }
    });
}

void flip(std::filesystem::path const& path, std::uint64_t byte) {
    auto const file = File::open_write(path);
    std::array<std::byte, 1> value{};
    file.read_at(byte, value);
    value[0] ^= std::byte{16};
    file.write_at(byte, value);
}

bool contains(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the newest good checkpoint is found, and why newer ones are not taken") {
    test::ScratchDir const scratch(test::world());
    Store const store(scratch / "checkpoints", 5);
    CHECK_FALSE(store.newest_good(test::world()).has_value());
    for (int const step : {0, 100, 200, 300, 400}) {
        save(store, step);
    }
    auto found = store.newest_good(test::world());
    CHECK((found && found->step == 400 && found->skipped.empty()));

    on_root([&] {
        flip(store.path_for(400), 4096 + 3 * 65536 + 5);
        std::filesystem::resize_file(store.path_for(300), 50'000);
        flip(store.path_for(200), 60); // in the checksum header
    });
    found = store.newest_good(test::world());
    CHECK((found && found->step == 100 && found->file.path() == store.path_for(100)));
    CHECK((found && checkpoint::Reader(found->file).record().integers.at("step") == 100));
    auto const skipped = found ? found->skipped : std::vector<std::string>{};
    CHECK(skipped.size() == 3);
    if (skipped.size() == 3) {
        CHECK(contains(skipped[0], "step-00000400.h5"));
        CHECK(contains(skipped[0], "block 3"));
        CHECK(contains(skipped[1], "step-00000300.h5"));
        CHECK(contains(skipped[1], "cut short"));
        CHECK(contains(skipped[2], "step-00000200.h5"));
        CHECK(contains(skipped[2], "checksum header"));
    }
}

TEST_CASE("a file under another step's name, and what is no file, are skipped") {
    test::ScratchDir const scratch(test::world());
    Store const store(scratch / "checkpoints", 9);
    save(store, 116);
    on_root([&] {
        std::filesystem::copy_file(store.path_for(116), store.path_for(120));
        if (::mkfifo(store.path_for(130).c_str(), 0600) != 0) {
            throw std::runtime_error("mkfifo");
        }
        std::filesystem::create_symlink("/dev/zero", store.path_for(140));
        std::filesystem::create_directory(store.path_for(150));
    });
    auto const found = store.newest_good(test::world());
    CHECK((found && found->step == 116 && found->file.path() == store.path_for(116)));
    auto const skipped = found ? found->skipped : std::vector<std::string>();
    CHECK(skipped.size() == 4);
    for (std::size_t i = 0; i < std::min<std::size_t>(skipped.size(), 4); ++i) {
        constexpr std::array words{"it is a directory", "it is a device", "it is a pipe",
                                   "it is the checkpoint of step 116"};
        CHECK(contains(skipped[i], words.at(i)));
    }
    on_root([&] {
        if (!store.prune(1).empty()) { // the one that is good stays, and what is no file
            throw std::runtime_error("pruned");
        }
    });
    CHECK(comm::all_ranks(test::world(), store.list().size() == 5));
}

TEST_CASE("checkpoints none of which is good are 65 on all ranks, with every reason") {
    test::ScratchDir const scratch(test::world());
    Store const store(scratch / "checkpoints", 2);
    save(store, 1);
    save(store, 2);
    on_root([&] {
        flip(store.path_for(1), 70'000);
        flip(store.path_for(2), 100);
    });
    ExitCode code = ExitCode::ok;
    std::string why;
    try {
        static_cast<void>(store.newest_good(test::world()));
    } catch (AgreedError const& error) {
        code = error.code();
        why = error.text().why;
    }
    CHECK(code == ExitCode::data);
    CHECK(contains(why, "step-00000001.h5"));
    CHECK(contains(why, "step-00000002.h5"));
    CHECK(comm::all_ranks(test::world(), code == ExitCode::data));
}

TEST_CASE("damage that only one rank looks at is known to all") {
    test::ScratchDir const scratch(test::world());
    Store const store(scratch / "checkpoints", 2);
    save(store, 1);
    auto const path = store.path_for(1);
    for (std::uint64_t block = 0; block < 5; ++block) {
        auto const byte = 4096 + block * 65536 + 11;
        on_root([&] { flip(path, byte); });
        std::string why;
        int rank = -1;
        try {
            checkpoint::verify_together(test::world(), path);
        } catch (AgreedError const& error) {
            why = error.text().why;
            rank = error.rank();
        }
        CHECK(contains(why, "block " + std::to_string(block) + " "));
        CHECK(contains(why, "bytes " + std::to_string(4096 + block * 65536) + " to "));
        CHECK(rank == static_cast<int>(block) % test::world().size());
        on_root([&] { flip(path, byte); });
    }
    CHECK_NOTHROW(checkpoint::verify_together(test::world(), path));
}

TEST_CASE("save leaves as many as asked for, and the old ones when it fails") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    Store const store(scratch / "checkpoints", 2);
    for (int const step : {1, 2, 3}) {
        save(store, step);
    }
    comm::barrier(world); // rank 0 has pruned
    CHECK(store.list().size() == 2);
    auto wrong = test::State(1000).snapshot(world.rank(), world.size());
    wrong.arrays[0].elements += 1;
    CHECK_THROWS_AS(store.save(world, wrong, 4, "1"), AgreedError);
    comm::barrier(world); // rank 0 has removed the partial file
    CHECK(store.list().size() == 2);
    auto const found = store.newest_good(world);
    CHECK((found && found->step == 3));
}

TEST_CASE("with a local directory a checkpoint is there first, and a verified copy in the run's") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    Store const store(scratch / "checkpoints", 2, {}, scratch / "local");
    Store const local(scratch / "local", 2);
    auto const other = scratch / "of another";
    on_root([&] { // somebody else's link, in place of what is copied
        make_directories(store.directory());
        write_text_durably(other, "text");
        std::filesystem::create_symlink(other, checkpoint::partial_path(store.path_for(1), "1"));
    });
    for (int const step : {1, 2, 3}) {
        save(store, step);
    }
    comm::barrier(world); // rank 0 has pruned
    CHECK(store.list().size() == 2);
    CHECK(local.list().size() == 2);
    CHECK(checkpoint::verify(store.path_for(3)).empty());
    CHECK(read_text(other) == "text");
    auto const newest = [&] {
        auto const found = store.newest_good(world);
        return found ? found->file.path() : std::filesystem::path();
    };
    CHECK(newest() == local.path_for(3)); // the faster of two that are equal
    on_root([&] { flip(local.path_for(3), 70'000); });
    CHECK(newest() == store.path_for(3));
    on_root([&] { flip(store.path_for(3), 70'000); });
    CHECK(newest() == local.path_for(2));
    on_root([&] { std::filesystem::remove_all(scratch / "local"); });
    CHECK(newest() == store.path_for(2));
}

TEST_CASE("an attempt that was fenced off renames nothing, removes nothing") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    bool ours = true;
    Store const store(scratch / "checkpoints", 1, [&] {
        if (!ours) {
            throw Error(ExitCode::rank_lost, {"the directory", "taken over", "nothing"});
        }
    });
    save(store, 1);
    ours = false;
    ExitCode code = ExitCode::ok;
    try {
        save(store, 2);
    } catch (AgreedError const& error) {
        code = error.code();
    }
    CHECK(code == ExitCode::rank_lost);
    comm::barrier(world); // rank 0 has removed the partial file
    CHECK(store.list().size() == 1);
    CHECK(std::filesystem::exists(store.path_for(1)));
    CHECK_FALSE(std::filesystem::exists(checkpoint::partial_path(store.path_for(2), "1")));
}
