#include "trace/request.hpp"

#include <fstream>
#include <sys/stat.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

std::int64_t taken_of(std::filesystem::path const& run, std::string const& text) {
    std::ofstream(trace::request_file(run)) << text;
    auto const steps = trace::take_request(run, 1000);
    CHECK_FALSE(std::filesystem::exists(trace::request_file(run)));
    return steps;
}

} // namespace

TEST_CASE("a request is taken once") {
    test::ScratchDir const run;
    CHECK(trace::take_request(run.path(), 1000) == 0);
    trace::ask_for_steps(run.path(), 12);
    CHECK(test::error_of([&] { trace::ask_for_steps(run.path(), 5); }).code() ==
          ExitCode::cannot_create);
    CHECK(trace::take_request(run.path(), 1000) == 12);
    CHECK(trace::take_request(run.path(), 1000) == 0);
}

TEST_CASE("what is no request is removed, and asks for nothing") {
    test::ScratchDir const run;
    for (char const* const text :
         {"", "0", "-3", "1001", "ten", "1e9", "99999999999999999999999", "5 6", "\xff\xfe"}) {
        CHECK(taken_of(run.path(), text) == 0);
    }
    CHECK(taken_of(run.path(), " 7\n") == 7);
}

TEST_CASE("a link, a pipe or a directory in its place is followed nowhere") {
    test::ScratchDir const run;
    auto const file = trace::request_file(run.path());
    std::ofstream(run.path() / "elsewhere") << "5";
    std::filesystem::create_symlink(run.path() / "elsewhere", file);
    CHECK(trace::take_request(run.path(), 1000) == 0);
    CHECK(std::filesystem::exists(run.path() / "elsewhere"));
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    CHECK(trace::take_request(run.path(), 1000) == 0);
    std::filesystem::create_directory(file);
    std::ofstream(file / "inside") << "5";
    CHECK(trace::take_request(run.path(), 1000) == 0);
    CHECK(std::filesystem::exists(file / "inside"));
}
