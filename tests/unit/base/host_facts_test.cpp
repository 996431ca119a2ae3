#include "base/file.hpp"
#include "base/file_hash.hpp"
#include "base/file_system.hpp"
#include "base/host_facts.hpp"

#include <sched.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

TEST_CASE("the cores that a process is bound to are told") {
    auto const before = allowed_cores();
    REQUIRE_FALSE(before.empty());
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(before.back(), &one);
    REQUIRE(::sched_setaffinity(0, sizeof(one), &one) == 0);
    CHECK(allowed_cores() == std::vector{before.back()});
    CHECK(usable_cores() == 1);
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int const core : before) {
        CPU_SET(core, &all);
    }
    ::sched_setaffinity(0, sizeof(all), &all);
    CHECK(host_cores() >= 1);
    CHECK(granted_cores() > 0);
    CHECK(granted_cores() <= host_cores());
}

TEST_CASE("NUMA nodes are counted whatever their numbers") {
    test::ScratchDir const scratch;
    for (char const* name : {"node0", "node8", "node252", "node", "nodes2", "possible"}) {
        std::filesystem::create_directory(scratch / name);
    }
    CHECK(numa_nodes(scratch.path()) == 3);
    CHECK(numa_nodes(scratch / "none") == 0);
    CHECK(numa_nodes() >= 0);
}

TEST_CASE("a file system is named, written and locked") {
    test::ScratchDir const scratch;
    auto const found = file_system_of(scratch / "not/yet/there");
    CHECK_FALSE(found.type.empty());
    CHECK(found.free > 0);
    CHECK(found.lock.empty());
    CHECK(std::filesystem::is_empty(scratch.path()));
    CHECK(file_system_of("/dev/shm").type == "tmpfs");
    CHECK_THROWS_AS(file_system_of("/proc/1"), Error);
}

TEST_CASE("files are told apart by what they hold, wherever they lie") {
    test::ScratchDir const scratch;
    auto const text = std::string(1 << 18, 'x');
    write_text_durably(scratch / "a", text);
    write_text_durably(scratch / "b", text);
    write_text_durably(scratch / "c", text + "y");
    auto end = text;
    end.back() = 'y';
    write_text_durably(scratch / "d", end);
    CHECK(rough_hash(scratch / "a") == rough_hash(scratch / "b"));
    CHECK(rough_hash(scratch / "a") != rough_hash(scratch / "c"));
    CHECK(rough_hash(scratch / "a") != rough_hash(scratch / "d"));
    write_text_durably(scratch / "empty", "");
    CHECK(rough_hash(scratch / "empty") != 0);
    CHECK(test::error_of([&] { rough_hash(scratch / "none"); }).code() == ExitCode::no_input);
    CHECK(program_hash("lockstep") == program_hash("lockstep"));
}

TEST_CASE("names of a host are the same with and without its domain") {
    CHECK(is_same_host("node7", "node7"));
    CHECK(is_same_host("node7.cluster", "node7"));
    CHECK(is_same_host("node7", "node7.cluster"));
    CHECK_FALSE(is_same_host("node7", "node71"));
    CHECK_FALSE(is_same_host("10.0.0.1", "10.0.0.2"));
    CHECK_FALSE(is_same_host("", ".cluster"));
}
