#include "base/file.hpp"
#include "monitor/log.hpp"

#include <algorithm>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

TEST_CASE("a text takes one line of the log, whatever names in files hold") {
    test::ScratchDir const scratch;
    monitor::Log const log(scratch / "log.txt", monitor::Talk::silent);
    log.line("class a\nlockstep: root cause: b");
    log.important("c\rd");
    log.note("e\nf");
    auto const text = read_text(scratch / "log.txt");
    CHECK(std::ranges::count(text, '\n') == 3);
    CHECK(text.find("class a\\x0alockstep: root cause: b\n") != std::string::npos);
    CHECK(text.find("c\\x0dd\n") != std::string::npos);
}
