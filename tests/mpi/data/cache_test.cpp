// Memory and disks of a host that its ranks share.

#include "base/file.hpp"
#include "base/own_file.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "data/stage_in.hpp"
#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>
#include <unistd.h>

#include "catch.hpp"
#include "links.hpp"
#include "scratch_dir.hpp"
#include "world.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

constexpr std::int64_t per_file = 50;
constexpr std::size_t values_of_sample = 30;

void write_file(std::filesystem::path const& path, std::int64_t first) {
    std::vector<float> values;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = first; i < first + per_file; ++i) {
        values.insert(values.end(), values_of_sample, static_cast<float>(i));
        labels.push_back(i % 7);
    }
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::f32, {per_file, values_of_sample});
    file.create_dataset("targets", h5::Type::i64, {per_file});
    file.write("inputs", h5::Type::f32, values);
    file.write("targets", h5::Type::i64, labels);
    file.close();
}

void write_files(comm::Communicator const& world, test::ScratchDir const& scratch) {
    comm::agree(world, "write", [&] {
        for (int i = 0; world.is_root() && i < 3; ++i) {
            write_file(scratch / ("part-" + std::to_string(i) + ".h5"), i * per_file);
        }
    });
}

/// Whether every sample can be read and holds what was written.
bool is_whole(Dataset const& set) {
    Batch batch;
    Scratch buffers;
    for (std::int64_t i = 0; i < set.samples(); ++i) {
        batch.indices.push_back(i * 11 % set.samples());
    }
    set.read(batch, buffers);
    for (std::size_t i = 0; i < batch.inputs().size(); ++i) {
        if (batch.inputs()[i] != static_cast<float>(batch.indices[i / values_of_sample])) {
            return false;
        }
    }
    for (std::size_t i = 0; i < batch.indices.size(); ++i) {
        if (batch.targets()[i] != batch.indices[i] % 7) {
            return false;
        }
    }
    return set.samples() == 3 * per_file;
}

/// Cuts the files short, and says whether all ranks can still read every sample.
bool is_whole_without_files(comm::Communicator const& world, test::ScratchDir const& scratch,
                            Dataset const& set) {
    comm::agree(world, "truncate", [&] {
        for (int i = 0; world.is_root() && i < 3; ++i) {
            std::filesystem::resize_file(scratch / ("part-" + std::to_string(i) + ".h5"), 100);
        }
    });
    bool whole = false;
    comm::agree(world, "read", [&] { whole = is_whole(set); });
    return comm::all_ranks(world, whole);
}

} // namespace

TEST_CASE("data in memory is read by all ranks of a host, and needs the files no more") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    write_files(world, scratch);
    std::optional<Dataset> set;
    comm::agree(world, "open",
                [&] { set.emplace(DatasetOptions{(scratch / "part-*.h5").string()}); });
    auto const host = world.split_by_host();
    set->keep_in_memory(host);
    CHECK(is_whole_without_files(world, scratch, *set));
}

TEST_CASE("an error of one rank while data is read into memory ends all") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    write_files(world, scratch);
    std::optional<Dataset> set;
    comm::agree(world, "open",
                [&] { set.emplace(DatasetOptions{(scratch / "part-*.h5").string()}); });
    comm::agree(world, "truncate", [&] {
        if (world.is_root()) {
            std::filesystem::resize_file(scratch / "part-2.h5", 100);
        }
    });
    std::optional<ExitCode> code;
    try {
        set->keep_in_memory(world.split_by_host());
    } catch (AgreedError const& error) {
        code = error.code();
    }
    CHECK(comm::all_ranks(world, code == ExitCode::data));
}

TEST_CASE("files are copied to a disk of the host once, and used from there") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    write_files(world, scratch);
    auto const host = world.split_by_host();
    auto const files = expand_files((scratch / "part-*.h5").string());
    auto const mode = [](std::filesystem::path const& path) {
        return std::filesystem::status(path).permissions();
    };
    comm::agree(world, "a private file", [&] {
        if (world.is_root()) {
            std::filesystem::permissions(files[0], std::filesystem::perms(0640));
        }
    });
    auto const copies = stage_in(files, scratch / "local", host);
    CHECK(mode(scratch / "local") == std::filesystem::perms(0700));

    auto const count = [&] {
        return std::distance(std::filesystem::directory_iterator(scratch / "local"),
                             std::filesystem::directory_iterator());
    };
    auto const before = count();
    comm::barrier(world);
    CHECK(before == 3); // no temporary file is left
    CHECK(stage_in(files, scratch / "local", host) == copies);
    CHECK(count() == 3);
    comm::barrier(world);

    // What is there, but is not the copy, is made again, and that is told.
    auto const good = read_text(copies[0]);
    auto const again = [&](char const* why,
                           std::function<void(std::filesystem::path const&)> harm) {
        comm::agree(world, "harm", [&] {
            if (world.is_root()) {
                harm(copies[0]);
            }
        });
        std::ostringstream told;
        auto* const screen = std::cerr.rdbuf(told.rdbuf());
        auto const staged = stage_in(files, scratch / "local", host);
        std::cerr.rdbuf(screen);
        CHECK(staged == copies);
        CHECK((!host.is_root() || told.str().ends_with(why)));
        CHECK(told.str().empty() == (*why == '\0' || !host.is_root()));
        CHECK(read_text(copies[0]) == good);
        CHECK(distrust(copies[0]).empty());
        CHECK(mode(copies[0]) == std::filesystem::perms(0600));
        comm::barrier(world);
    };
    again("", [](auto const&) {});
    again("its bytes are not those of the file\n", [&](auto const& copy) {
        auto other = good;
        other.back() ^= 1;
        write_text_durably(copy, other);
        std::filesystem::permissions(copy, std::filesystem::perms(0600));
    });
    again("its size is not that of the file\n",
          [](auto const& copy) { write_text_durably(copy, "short"); });
    again("other users may write to it\n", [](auto const& copy) {
        std::filesystem::permissions(copy, std::filesystem::perms(0666));
    });
    again("users may read it who may not read the file\n", [](auto const& copy) {
        std::filesystem::permissions(copy, std::filesystem::perms(0644));
    });
    again("it is not a regular file\n", [&](auto const& copy) {
        std::filesystem::remove(copy);
        std::filesystem::create_symlink(files[0], copy);
    });
    if (::geteuid() == 0) {
        again("it belongs to another user (uid 65534)\n", [](auto const& copy) {
            CHECK(::chown(copy.c_str(), 65534, static_cast<gid_t>(-1)) == 0);
        });
    } else {
        WARN("SKIPPED: only root can give files to other users");
    }

    // Another content under the same name is another copy.
    comm::agree(world, "write", [&] {
        if (world.is_root()) {
            write_file(scratch / "part-1.h5", 1000);
            std::filesystem::last_write_time(scratch / "part-1.h5",
                                             std::filesystem::file_time_type::clock::now() +
                                                 std::chrono::seconds(10));
        }
    });
    CHECK(stage_in(files, scratch / "local", host) != copies);
    CHECK(count() == 4);
    comm::barrier(world);
}

TEST_CASE("a data set is read from copies of its files, those that it has links to as well") {
    auto const& world = test::world();
    test::ScratchDir const scratch(world);
    write_files(world, scratch);
    comm::agree(world, "link", [&] {
        if (world.is_root()) {
            std::filesystem::create_directory(scratch / "linked");
            for (std::string const part : {"part-0.h5", "part-1.h5", "part-2.h5"}) {
                test::write_links(scratch / "linked" / part, "../" + part, {"inputs", "targets"});
            }
        }
    });
    std::optional<Dataset> set;
    comm::agree(world, "open",
                [&] { set.emplace(DatasetOptions{(scratch / "linked/part-*.h5").string()}); });
    set->keep_on_disk(scratch / "local", world.split_by_host());
    CHECK(is_whole_without_files(world, scratch, *set));
}
