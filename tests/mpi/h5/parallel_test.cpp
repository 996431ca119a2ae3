#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "comm/native.hpp"
#include "h5/file.hpp"
#include "h5/refused_writes.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <numeric>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "file_size_limit.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;

namespace {

/// What the ranks wrote together, by who held how many elements.
struct Outcome {
    h5::Transfer transfer;
    std::vector<float> content;
};

/// Makes a dataset, writes each rank's `count` elements behind those of the ranks before, numbered
/// from 0 over all, and reads all of it back alone.
Outcome write_together(comm::Communicator const& comm, std::uint64_t count) {
    test::ScratchDir const scratch(comm);
    auto const path = scratch / "parallel.h5";
    auto const counts = comm::all_gather(comm, count);
    auto const first =
        std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::uint64_t{0});
    auto const total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    std::vector<float> mine(count);
    std::iota(mine.begin(), mine.end(), static_cast<float>(first));
    auto const bytes = std::as_bytes(std::span(mine));

    comm::agree(comm, "create", [&] {
        if (comm.is_root()) {
            auto file = h5::File::create(path);
            file.create_dataset("x", h5::Type::f32, {total});
            file.close();
        }
    });
    auto const calls =
        comm::all_reduce(comm, h5::File::calls_for(bytes.size()), comm::Reduce::maximum);
    std::optional<h5::File> file;
    comm::agree(comm, "open", [&] { file.emplace(h5::File::open_parallel(path, comm)); });
    Outcome outcome;
    comm::agree(comm, "write", [&] {
        outcome.transfer =
            file->write_parts("x", h5::Type::f32, std::vector<h5::Part>{{first, bytes}}, calls);
        file->flush();
    });
    comm::agree(comm, "close", [&] { file->close(); });
    comm::agree(comm, "read", [&] {
        outcome.content.resize(total);
        h5::File::open(path).read("x", h5::Type::f32, outcome.content);
    });
    return outcome;
}

bool is_counting(std::vector<float> const& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != static_cast<float>(i)) {
            return false;
        }
    }
    return true;
}

} // namespace

TEST_CASE("parts of some MiB are written collectively and lie where they belong") {
    auto const& world = test::world();
    auto const count = std::uint64_t{1'000'000} + 4321 * static_cast<std::uint64_t>(world.rank());
    auto const outcome = write_together(world, count);
    CHECK(outcome.transfer.collective);
    CHECK(outcome.transfer.cause == 0);
    CHECK(outcome.content.size() >= 1'000'000 * static_cast<std::size_t>(world.size()));
    CHECK(is_counting(outcome.content));
}

TEST_CASE("a write is collective also where most ranks hold nothing") {
    auto const& world = test::world();
    bool const last = world.rank() == world.size() - 1;
    auto const outcome = write_together(world, last ? 70'001 : 0);
    CHECK(outcome.transfer.collective);
    CHECK(outcome.content.size() == 70'001);
    CHECK(is_counting(outcome.content));
}

TEST_CASE("a part of one element is written as it is") {
    auto const outcome = write_together(test::world(), 1);
    CHECK(outcome.transfer.collective);
    CHECK(outcome.content.size() == static_cast<std::size_t>(test::world().size()));
    CHECK(is_counting(outcome.content));
}

TEST_CASE("a write that MPI-IO refuses is noted, also where a tool sees the call, too") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    auto const path = (scratch / "refused").string();
    MPI_File file = MPI_FILE_NULL;
    comm::check(MPI_File_open(comm::raw(world), path.c_str(), MPI_MODE_CREATE | MPI_MODE_WRONLY,
                              MPI_INFO_NULL, &file),
                "MPI_File_open");
    std::vector<char> const bytes(1 << 20);
    auto const first = static_cast<MPI_Offset>(bytes.size()) * world.rank();
    h5::Disk disk;
    int result = MPI_ERR_OTHER;
    {
        h5::RefusedWrites const refused(disk);
        test::FileSizeLimit const limit(4096);
        MPI_Status status;
        result = MPI_File_write_at(file, first, bytes.data(), 1 << 20, MPI_BYTE, &status);
    }
    MPI_File_close(&file);
    CHECK(result == MPI_SUCCESS);
    CHECK(disk.error_number() != 0);
    auto* const calls =
        reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "lockstep_io_tool_calls"));
    CHECK((calls != nullptr && calls() > 0) == (std::getenv("LOCKSTEP_EXPECT_TOOL") != nullptr));
}
