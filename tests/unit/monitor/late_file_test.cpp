#include "base/brief_variable.hpp"
#include "base/file.hpp"
#include "base/lease.hpp"
#include "monitor/late_file.hpp"

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using monitor::LateFile;
using monitor::Opening;

TEST_CASE("what comes before the directory is this process's is written then, in order") {
    test::ScratchDir const scratch;
    auto const file = scratch / "log.txt";
    write_text_durably(file, "whole\ncut");
    LateFile late(file, Opening::late);
    late.append_text("one\n");
    late.append_text("two\n");
    CHECK(read_text(file) == "whole\ncut");
    Lease const lease(scratch.path(), false);
    late.append_text("three\n");
    late.append_text("four\n");
    CHECK(read_text(file) == "whole\ncut\none\ntwo\nthree\nfour\n");
}

TEST_CASE("the directory of another process is left alone") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / Lease::file_name,
                       "number = 7\nhost = elsewhere\nprocess = 1\nlaunch = theirs\n");
    LateFile late(scratch / "log.txt", Opening::late);
    late.append_text("one\n");
    CHECK_FALSE(std::filesystem::exists(scratch / "log.txt"));
    CHECK_FALSE(is_claimed_here(scratch.path()));
    CHECK(claimed_number(scratch.path()) == 7);
    CHECK_FALSE(claimed_by_others(scratch.path())); // no launch has started this process
    for (char const* launch : {"theirs", "ours"}) {
        BriefVariable const started_by("LOCKSTEP_LAUNCH", launch);
        bool const others = claimed_by_others(scratch.path()).has_value();
        CHECK(others == (std::string(launch) == "ours"));
        CHECK(taken_over(scratch.path(), 7).has_value() == others);
    }
}

TEST_CASE("files are opened late only by a run that is continued") {
    test::ScratchDir const scratch;
    CHECK(monitor::opening_of_record(scratch / "log.txt") == Opening::now);
    CHECK(test::error_of([&] { LateFile(scratch / "none" / "log.txt", Opening::now); }).code() ==
          ExitCode::cannot_create);
    BriefVariable const continues("LOCKSTEP_CONTINUES", "id");
    CHECK(monitor::opening_of_record(scratch / "log.txt") == Opening::late);
    std::filesystem::create_symlink("/proc/self/fd/1", scratch / "stdout");
    CHECK(monitor::opening_of_record(scratch / "stdout") == Opening::now);
}
