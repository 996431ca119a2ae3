#include "base/file.hpp"
#include "lockstep/monitor/metrics_file.hpp"
#include "monitor/tolerant.hpp"

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

std::size_t count(std::string const& text, std::string const& part) {
    std::size_t n = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++n;
    }
    return n;
}

} // namespace

TEST_CASE("a full disk is one warning, and the observer is asked again") {
    test::ScratchDir const scratch;
    monitor::Log const log(scratch / "log.txt", monitor::Talk::silent);
    monitor::Tolerant observer(std::make_unique<monitor::MetricsFile>("/dev/full"), log);
    for (int step = 1; step <= 3; ++step) {
        observer.on(train::Step{.step = step, .logged = true, .step_s = 1});
    }
    auto const text = read_text(scratch / "log.txt");
    CHECK(count(text, "warning: cannot write /dev/full") == 1);
    CHECK(count(text, "The run continues") == 1);
}

TEST_CASE("a log on a full disk does not stop anything") {
    monitor::Log const log("/dev/full", monitor::Talk::silent);
    log.line("one");
    log.important("two");
    log.note("three");
}
