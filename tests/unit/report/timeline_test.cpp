#include "base/file.hpp"
#include "base/text.hpp"
#include "monitor/ledger.hpp"
#include "report/plots.hpp"
#include "report/report.hpp"
#include "report/stretches.hpp"
#include "report/timeline_chart.hpp"

#include <cstdlib>
#include <numeric>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::monitor;
using namespace lockstep::report;

namespace {

std::string attempt_line(char const* name, char const* start, char const* seconds) {
    return concat(R"({"attempt":")", name, R"(","start":"2026-01-31T12:0)", start,
                  R"(Z","end":"later","ranks":4,"job":"12","restart":0,"setup_s":3,)",
                  R"("first_step":0,"last_step":9,"lost_steps":0,"startup_s":10,)",
                  R"("checkpoint_s":1,"validation_s":2,"exit_code":0,)", seconds, "}\n");
}

constexpr char const* records = R"---(
{"event":"start","attempt":"first","ranks":4,"elapsed_s":1,"time":"now"}
{"event":"checkpoint","elapsed_s":50,"step":5,"seconds":3,"stall_s":1}
{"event":"validation","elapsed_s":70,"step":7,"seconds":2}
{"event":"failure","elapsed_s":100,"cause":"rank 3 (host4, cpu)","message":"gone"}
{"event":"start","attempt":"second","ranks":4,"elapsed_s":1,"time":"now"}
{"event":"end","reason":"finished","elapsed_s":98,"step":9}
)---";

/// A run that lost a rank after 93 s, and continued 23 s after the attempt's end.
void write_run(std::filesystem::path const& directory, char const* more = "") {
    std::filesystem::create_directory(directory);
    auto const first =
        concat(R"("seconds":100,"productive_s":60,"lost_s":20,"silent_s":7,"waited_s":0,)", more,
               R"("reason":"failed")");
    File::append(directory / "history.jsonl")
        .append_text(
            concat(attempt_line("first", "0:00", first.c_str()),
                   attempt_line("second", "2:00",
                                R"("seconds":100,"productive_s":87,"lost_s":0,"silent_s":0,)"
                                R"("waited_s":23,"reason":"finished")")));
    File::append(directory / "metrics.jsonl").append_text(records);
}

std::vector<AttemptStretches> read_stretches(std::filesystem::path const& run) {
    return attempt_stretches(run, attempt_times(run));
}

} // namespace

TEST_CASE("effective time is told of each run, and not made up") {
    test::ScratchDir const scratch;
    write_run(scratch / "lost");
    std::filesystem::create_directory(scratch / "old");
    File::append(scratch / "old/metrics.jsonl").append_text(records);
    std::vector<RunRecords> runs{RunRecords(scratch / "old"), RunRecords(scratch / "lost")};
    for (auto& run : runs) {
        run.read();
    }
    auto const text = write_report(runs, {scratch / "out", {}}, {});
    CHECK(text.find("| old | – | not recorded | – |") != std::string::npos);
    CHECK(text.find("| lost | 2 | 0.248 | 65.9 % | 1.8 % | 0.9 % | 9.0 % | 9.0 % | 13.5 % | 0.0 % "
                    "| 0.0 % |\n") != std::string::npos);
}

TEST_CASE("an attempt is its stretches, with pauses where they were") {
    test::ScratchDir const scratch;
    write_run(scratch / "lost");
    auto const attempts = read_stretches(scratch / "lost");
    REQUIRE(attempts.size() == 2);
    CHECK(attempts[0].cause == "rank 3 (host4, cpu): gone");
    CHECK(attempts[0].lost_at_s == 93);
    std::string uses;
    double at = 0;
    for (auto const& stretch : attempts[0].stretches) {
        CHECK(stretch.from == Approx(at));
        at = stretch.to;
        uses += concat(time_use_names[place_of(stretch.use)], " ", stretch.from, ", ");
    }
    CHECK(at == Approx(100));
    CHECK(uses == "start 0, productive 10, checkpoints 49, productive 50, validation 70, "
                  "productive 72, repeated steps 73, waiting 93, ");
    CHECK(attempts[1].lost_at_s == -1);
}

TEST_CASE("stretches fill an attempt whatever pauses are told") {
    AttemptTime const time{.attempt = "one",
                           .ranks = 1,
                           .seconds = 50,
                           .startup_s = 5,
                           .productive_s = 30,
                           .lost_s = 5,
                           .checkpoint_s = 4,
                           .validation_s = 3,
                           .silent_s = 2};
    auto const uses = parts_of(time);
    std::vector<Stretch> many;
    for (int i = 0; i < 4000; ++i) {
        many.push_back({0.01 * i, 0.01 * i + 0.001, TimeUse::checkpoint});
    }
    for (auto const& pauses : std::vector<std::vector<Stretch>>{
             {},
             {{2, 5, TimeUse::validation}, {4, 8, TimeUse::checkpoint}}, // one begins in another
             {{48, 70, TimeUse::checkpoint}},                            // it ends too late
             {{30, 90, TimeUse::validation}, {1, 2, TimeUse::checkpoint}},
             many}) {
        TimeParts sums{};
        double at = 0;
        for (auto const& stretch : stretches_of(time, pauses)) {
            CHECK(stretch.from == Approx(at));
            at = stretch.to;
            sums[place_of(stretch.use)] += stretch.to - stretch.from;
        }
        for (std::size_t use = 0; use < sums.size(); ++use) {
            INFO(time_use_names[use]);
            CHECK(sums[use] == Approx(uses[use]).margin(1e-9));
        }
    }
}

TEST_CASE("the timeline has a bar for each attempt, with the wait for the next") {
    test::ScratchDir const scratch;
    write_run(scratch / "lost");
    auto const attempts = read_stretches(scratch / "lost");
    EffectiveTime const whole(attempt_times(scratch / "lost"));
    auto const chart = timeline_chart("lost", attempts, whole);
    CHECK(chart.bars.rows == std::vector<std::string>{"1: 4 ranks", "2: 4 ranks"});
    CHECK(chart.bars.bars.back().to == Approx(223.0 / 60));
    REQUIRE(chart.labels.size() == 1);
    CHECK(chart.labels[0].text == "rank 3 (host4, cpu): gone");
    CHECK(chart.bars.breaks.empty());
    CHECK(timeline_chart("one", {attempts[1]}, whole).empty());

    // Time between two allocations has no room.
    auto apart = attempts;
    apart[1].time.restart = 1;
    auto const broken = timeline_chart("lost", apart, whole);
    CHECK(broken.bars.breaks == std::vector<double>{100.0 / 60});
    CHECK(broken.labels.back().text == "not allocated: 20.0 s");

    if (std::system("gnuplot --version > /dev/null 2>&1") == 0) {
        RunRecords run(scratch / "lost");
        run.read();
        draw_plots({run}, scratch / "plots");
        CHECK(read_text(scratch / "plots/timeline.png").starts_with("\x89PNG\r\n\x1a\n"));
    }
}

TEST_CASE("a host that was left out is told with the evidence") {
    test::ScratchDir const scratch;
    write_run(scratch / "lost", R"("retired":[{"host":"node04","evidence":"no answer"}],)");
    CHECK(read_stretches(scratch / "lost").at(0).cause == "node04 is left out: no answer");
}
