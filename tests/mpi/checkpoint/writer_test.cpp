#include "checkpoint/diff.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <cstdlib>

#include "../../unit/checkpoint/state.hpp"
#include "catch.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;

namespace {

checkpoint::Written write(test::State const& state, std::filesystem::path const& path) {
    auto const& world = test::world();
    return checkpoint::write(world, state.snapshot(world.rank(), world.size()), path, "7");
}

std::size_t files_in(std::filesystem::path const& directory) {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory), {}));
}

} // namespace

TEST_CASE("what all ranks wrote, each reads whole") {
    test::ScratchDir const scratch(test::world());
    test::State const state(200'000);
    auto const written = write(state, scratch / "c.h5");
    CHECK(written.path == scratch / "c.h5");
    CHECK(written.collective);
    CHECK(written.bytes == std::filesystem::file_size(written.path));
    CHECK(files_in(scratch.path()) == 1);
    CHECK(checkpoint::verify(written.path).empty());
    CHECK_NOTHROW(checkpoint::verify_together(test::world(), written.path));

    checkpoint::Reader const reader(written.path);
    CHECK(test::read_whole<float>(reader, "state/parameters") == state.parameters);
    CHECK(test::read_whole<double>(reader, "state/moments") == state.moments);
    CHECK(test::read_whole<std::int64_t>(reader, "state/counters") == state.counters);
    CHECK(reader.record() == state.record);
}

TEST_CASE("the bytes are the same as those that one rank writes") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    test::State const state(50'000);
    write(state, scratch / "all.h5");
    comm::agree(world, "write alone", [&] {
        if (world.is_root()) {
            auto const self = comm::Communicator::self();
            checkpoint::write(self, state.snapshot(), scratch / "one.h5", "8");
        }
    });
    auto const comparison = checkpoint::diff(scratch / "all.h5", scratch / "one.h5");
    CHECK(comparison.identical());
    CHECK(comparison.records.empty());
    CHECK(std::filesystem::file_size(scratch / "all.h5") ==
          std::filesystem::file_size(scratch / "one.h5"));
}

TEST_CASE("large arrays start on pages") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    write(test::State(50'000), scratch / "c.h5");
    auto const file = h5::File::open(scratch / "c.h5");
    for (auto const* name : {"state/parameters", "state/moments"}) {
        auto const info = file.info(name);
        CHECK(info.contiguous);
        CHECK(info.offset.value_or(1) % 4096 == 0);
    }
}

TEST_CASE("a checkpoint of the same step is replaced") {
    test::ScratchDir const scratch(test::world());
    test::State state(5000);
    write(state, scratch / "c.h5");
    state.parameters[17] = 99;
    write(state, scratch / "c.h5");
    CHECK(files_in(scratch.path()) == 1);
    checkpoint::Reader const reader(scratch / "c.h5");
    CHECK(test::read_whole<float>(reader, "state/parameters") == state.parameters);
}

TEST_CASE("a checkpoint can be written on a communicator of some of the ranks") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    auto const own = comm::Communicator::self();
    auto const path = scratch / ("rank" + std::to_string(world.rank()) + ".h5");
    test::State const state(1000);
    checkpoint::write(own, state.snapshot(), path, "1");
    CHECK(checkpoint::verify(path).empty());
}

TEST_CASE("what one rank gathers and writes is what all ranks write") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    test::State const state(3'000'000); // parts of more than one chunk
    write(state, scratch / "collective.h5");
    for (std::string const writer : {"gather", "hosts"}) {
        ::setenv("LOCKSTEP_CHECKPOINT_WRITER", writer.c_str(), 1);
        auto const written = write(state, scratch / (writer + ".h5"));
        CHECK(checkpoint::verify(written.path).empty());
        // Bytes but for the times that HDF5 stores with its groups.
        auto const comparison = checkpoint::diff(written.path, scratch / "collective.h5");
        CHECK(comparison.identical());
        CHECK(comparison.records.empty());
        CHECK(std::filesystem::file_size(written.path) ==
              std::filesystem::file_size(scratch / "collective.h5"));
    }
    ::setenv("LOCKSTEP_CHECKPOINT_WRITER", "neither", 1);
    CHECK_THROWS_AS(write(state, scratch / "none.h5"), AgreedError);
    ::unsetenv("LOCKSTEP_CHECKPOINT_WRITER");
    comm::barrier(world); // rank 0 removes what it had begun after all know of the error
    CHECK(files_in(scratch.path()) == 3);
}
