#include "base/file.hpp"
#include "base/partial_file.hpp"
#include "lockstep/base/error.hpp"

#include <csignal>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

TEST_CASE("a file that is not complete leaves nothing, one that is has its name") {
    test::ScratchDir const scratch;
    {
        PartialFile const partial(scratch / "partial");
        File::create_new(partial.path()).write_at(0, {});
    }
    CHECK(std::filesystem::is_empty(scratch.path()));
    {
        PartialFile partial(scratch / "partial");
        write_text_durably(partial.path(), "whole");
        CHECK_THROWS(partial.rename(scratch / "no/such/place"));
        partial.rename(scratch / "whole");
        write_text_durably(scratch / "partial", "of another"); // is no longer ours
    }
    CHECK(read_text(scratch / "whole") == "whole");
    REQUIRE(::mkfifo((scratch / "pipe").c_str(), 0600) == 0);
    {
        PartialFile partial(scratch / "for-the-pipe");
        write_text_durably(partial.path(), "whole");
        CHECK_THROWS_AS(partial.rename(scratch / "pipe"), Error); // nor a device
    }
    CHECK(std::filesystem::is_fifo(scratch / "pipe"));
    CHECK(read_text(scratch / "partial") == "of another");
}

TEST_CASE("a signal that ends the process leaves no incomplete file, and what was renamed stays") {
    test::ScratchDir const scratch;
    PartialFile const of_parent(scratch / "of-parent");
    File::create_new(of_parent.path()).write_at(0, {});
    for (int const number : {SIGTERM, SIGINT, SIGHUP}) {
        pid_t const child = ::fork();
        if (child == 0) {
            ::signal(number, SIG_DFL); // whatever started the test
            PartialFile whole(scratch / "partial-whole");
            write_text_durably(whole.path(), "whole");
            whole.rename(scratch / "whole");
            write_text_durably(whole.path(), "of another");
            PartialFile const partial(scratch / "partial");
            File::create_new(partial.path()).write_at(0, {});
            ::kill(::getpid(), number);
            ::pause();
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK((WIFSIGNALED(status) && WTERMSIG(status) == number));
        CHECK(!std::filesystem::exists(scratch / "partial"));
        CHECK(std::filesystem::exists(of_parent.path())); // the other process continues
        CHECK(read_text(scratch / "whole") == "whole");
        CHECK(std::filesystem::remove(scratch / "partial-whole"));
    }
}

TEST_CASE("no two incomplete files have one name, and all are known as such") {
    std::set<std::filesystem::path> names;
    for (int i = 0; i < 100; ++i) {
        auto const name = partial_path("place/best.h5");
        CHECK(names.insert(name).second);
        CHECK(name.string().starts_with("place/best.h5.partial-" + token_host() + "-"));
    }
    CHECK(partial_path("a", "attempt") == "a.partial-attempt");
}
