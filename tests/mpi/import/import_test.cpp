#include "base/file.hpp"
#include "base/text.hpp"
#include "data/verify.hpp"
#include "import/import.hpp"

#include <chrono>
#include <thread>

#include "catch.hpp"
#include "number_source.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

void quiet(std::string const&, std::int64_t, std::int64_t) {}

/// Whether both directories hold the same files, byte by byte; how many there are.
std::size_t equal_files(std::filesystem::path const& a, std::filesystem::path const& b) {
    std::size_t files = 0;
    for (auto const& entry : std::filesystem::directory_iterator(a)) {
        auto const twin = b / entry.path().filename();
        if (!std::filesystem::exists(twin) || read_text(entry.path()) != read_text(twin)) {
            return 0;
        }
        ++files;
    }
    return files;
}

ImportOptions options_for(std::filesystem::path const& out) {
    return {.out = out, .split = {.shares = {0.7, 0.3}}, .shard_samples = 60};
}

} // namespace

TEST_CASE("an import has the same bytes on any number of ranks") {
    auto const& comm = test::world();
    test::ScratchDir const scratch(comm);
    test::NumberSource const source(500);
    auto const report = import_set(comm, source, options_for(scratch / "all"), quiet);
    std::this_thread::sleep_for(std::chrono::seconds(1)); // times in files have whole seconds
    CHECK(report.sets.at(0).samples + report.sets.at(1).samples == 499);
    if (comm.is_root()) {
        import_set(comm::Communicator::self(), source, options_for(scratch / "one"), quiet);
        CHECK(equal_files(scratch / "all", scratch / "one") == report.files.size());
        for (auto const& file : report.files) {
            CHECK(verify(file.path).empty());
            auto const h5 = h5::File::open(file.path);
            std::vector<std::int64_t> offsets(static_cast<std::size_t>(file.samples) + 1);
            CHECK(h5.info("steps_offsets").shape == h5::Shape{offsets.size()});
            h5.read("steps_offsets", h5::Type::i64, offsets);
            CHECK(h5.info("steps").shape ==
                  h5::Shape{static_cast<std::uint64_t>(offsets.back()), 2});
        }
    }
}

TEST_CASE("an import that one rank's failure ended continues with the parts that were done") {
    auto const& comm = test::world();
    test::ScratchDir const scratch(comm);
    test::NumberSource source(500);
    source.before_read = [](std::int64_t item) {
        if (item == 300) {
            throw Error(ExitCode::io, {"item 300", "the disk is gone", "Mount it"});
        }
    };
    auto const options = options_for(scratch / "out");
    std::string told;
    try {
        import_set(comm, source, options, quiet);
    } catch (Error const& error) {
        told = error.what();
    }
    CHECK(told.find("item 300") != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(scratch / "out"));
    if (comm.is_root()) { // a part that was damaged since is made again
        auto const file = File::open_write(scratch / "out.importing/part-000000");
        file.write_at(40, std::as_bytes(std::span("xyz")));
    }
    comm::barrier(comm); // the damage is there when the others look
    source.before_read = [](std::int64_t) {};
    auto const report = import_set(comm, source, options, quiet);
    CHECK(report.parts_kept >= 20);
    CHECK(report.parts_kept < 74);
    CHECK_FALSE(std::filesystem::exists(scratch / "out.importing"));
    if (comm.is_root()) {
        import_set(comm::Communicator::self(), source, options_for(scratch / "one"), quiet);
        CHECK(equal_files(scratch / "out", scratch / "one") == report.files.size());
    }
}

TEST_CASE("a source that changed meanwhile is imported again") {
    auto const& comm = test::world();
    test::ScratchDir const scratch(comm);
    test::NumberSource source(500);
    source.before_read = [](std::int64_t item) {
        if (item == 300) {
            throw Error(ExitCode::io, {"item 300", "the disk is gone", "Mount it"});
        }
    };
    auto const options = options_for(scratch / "out");
    CHECK_THROWS_AS(import_set(comm, source, options, quiet), Error);
    CHECK(import_set(comm, test::NumberSource(490), options, quiet).parts_kept == 0);
}
