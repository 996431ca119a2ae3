#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/monitor/metrics_file.hpp"
#include "monitor/effective_time.hpp"
#include "monitor/ledger.hpp"

#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

/// One attempt of a run with steps of a second, logged every two steps, a checkpoint (of half a
/// second) every three.
class Attempt {
  public:
    Attempt(std::filesystem::path const& directory, std::string const& name, std::int64_t resumed)
        : metrics_(directory / "metrics.jsonl"),
          ledger_(directory, {"slurm", "12", 1, std::nullopt}, {}), step_(resumed) {
        train::Started started;
        started.attempt = name;
        started.host_of_rank = {"a", "a", "b", "b"};
        tell(started);
        if (resumed > 0) {
            tell(train::Resumed{"file", resumed, {}, {}});
        }
    }

    void train_until(std::int64_t step) {
        while (step_ < step) {
            ++step_;
            tell(train::Step{.step = step_, .logged = step_ % 2 == 0, .step_s = 1});
            if (step_ % 3 == 0) {
                tell(train::CheckpointWritten{step_, "file", 1, 0.5, 0.125, true});
                tell(train::Measured{.set = "validation", .step = step_, .seconds = 0.25});
            }
        }
    }

    void end(std::string const& reason) {
        train::Ended ended;
        ended.reason = reason;
        ended.step = step_;
        tell(ended);
    }

  private:
    void tell(train::Event const& event) {
        metrics_.on(event);
        ledger_.on(event);
    }

    monitor::MetricsFile metrics_;
    monitor::Ledger ledger_;
    std::int64_t step_;
};

std::vector<nlohmann::json> history(std::filesystem::path const& directory) {
    std::vector<nlohmann::json> lines;
    for (auto const& line : split(read_text(directory / "history.jsonl"), '\n')) {
        if (!line.empty()) {
            lines.push_back(nlohmann::json::parse(line));
        }
    }
    return lines;
}

} // namespace

TEST_CASE("an attempt that ends writes all of its line") {
    test::ScratchDir const scratch;
    {
        Attempt attempt(scratch.path(), "first", 0);
        CHECK(history(scratch.path()).at(0)["end"].is_null());
        attempt.train_until(7);
        attempt.end("SIGUSR1");
    }
    auto const line = history(scratch.path()).at(0);
    CHECK(line["attempt"] == "first");
    CHECK(line["ranks"] == 4);
    CHECK(line["hosts"] == std::vector<std::string>{"a", "b"});
    CHECK(line["job"] == "12");
    CHECK(line["restart"] == 1);
    CHECK(line["first_step"] == 0);
    CHECK(line["last_step"] == 7);
    CHECK(line["productive_s"] == 7);
    CHECK(line["lost_s"] == 0);
    CHECK(line["checkpoint_s"] == 0.25); // training continues while they are written
    CHECK(line["checkpoint_write_s"] == 1);
    CHECK(line["validation_s"] == 0.5);
    CHECK(line["seconds"].get<double>() >= line["setup_s"].get<double>());
    CHECK(line["exit_code"] == 75);
    CHECK(line["end"].is_string());
}

TEST_CASE("the line of a killed attempt is completed by the next, with the steps that were lost") {
    test::ScratchDir const scratch;
    Attempt(scratch.path(), "killed", 0).train_until(9); // logged: 2, 4, 6, 8
    CHECK(history(scratch.path()).at(0)["exit_code"].is_null());
    {
        Attempt next(scratch.path(), "next", 6);
        next.train_until(12);
        next.end("finished");
    }
    auto const lines = history(scratch.path());
    REQUIRE(lines.size() == 2);
    CHECK(lines[0]["reason"] == "killed");
    CHECK(lines[0]["exit_code"].is_null());
    CHECK(lines[0]["end"].is_string());
    CHECK(lines[0]["last_step"] == 8);
    CHECK(lines[0]["lost_steps"] == 2);
    CHECK(lines[0]["lost_s"].get<double>() == Approx(2));
    CHECK(lines[0]["productive_s"].get<double>() == Approx(6));
    CHECK(lines[0]["checkpoint_s"] == 0.375);
    CHECK(lines[0]["checkpoint_write_s"] == 1.5);
    CHECK(lines[0]["validation_s"] == 0.75);
    CHECK(lines[1]["first_step"] == 6);
    CHECK(lines[1]["productive_s"] == 6);
    CHECK(lines[1]["exit_code"] == 0);
}

TEST_CASE("a resume from an older checkpoint takes from all attempts since") {
    test::ScratchDir const scratch;
    for (auto const& [from, to] : {std::pair{0, 6}, {6, 10}, {10, 12}}) {
        Attempt attempt(scratch.path(), concat("until ", to), from);
        attempt.train_until(to);
        attempt.end("SIGTERM");
    }
    Attempt(scratch.path(), "older", 4).train_until(5);
    auto const lines = history(scratch.path());
    REQUIRE(lines.size() == 4);
    CHECK(lines[0]["lost_s"] == 2);
    CHECK(lines[0]["productive_s"] == 4);
    CHECK(lines[1]["lost_s"] == 4);
    CHECK(lines[1]["productive_s"] == 0);
    CHECK(lines[2]["lost_s"] == 2);
    // The lost steps are not counted twice.
    Attempt(scratch.path(), "again", 4).train_until(5);
    CHECK(history(scratch.path())[0]["lost_s"] == 2);
}

TEST_CASE("the length of an attempt that has no end is that of its records") {
    test::ScratchDir const scratch;
    auto const put = [&](char const* file, std::string const& line) {
        File::append(scratch / file).append_text(line + "\n");
    };
    auto const begun = [&](char const* attempt, char const* start, char const* more) {
        put("history.jsonl",
            concat(R"({"attempt":")", attempt, R"(","start":")", start,
                   R"(","end":null,"ranks":2,"job":"","launch":"launch-1","first_step":0,)",
                   R"("last_step":0,"lost_steps":0,"startup_s":4,"productive_s":0,"lost_s":0,)",
                   R"("checkpoint_s":0,"exit_code":null)", more, "}"));
    };
    auto const record = [&](double elapsed_s, std::string const& fields) {
        put("metrics.jsonl", concat("{\"elapsed_s\":", elapsed_s, ",", fields, "}"));
    };
    // Its records were opened 2.5 seconds after its start.
    begun("failed", "2026-01-31T12:00:03Z", R"(,"setup_s":3,"validation_s":0,"silent_s":0)");
    record(0.5, R"("event":"start","attempt":"failed")");
    record(3.5, R"("event":"step","step":2,"step_ms":1000)");
    record(4, R"("event":"checkpoint","step":2,"seconds":0.25,"stall_s":0.125)");
    record(4.5, R"("event":"failure","fatal":false)"); // the run continued
    record(20, R"("event":"failure","exit_code":76)"); // of a rank, since its start
    begun("earlier", "2026-01-31T12:00:25Z", "");
    record(0.5, R"("event":"start","attempt":"earlier")");
    record(9, R"("event":"step","step":2,"step_ms":1000)");
    begun("running", "2026-01-31T12:00:50Z", R"(,"setup_s":3,"validation_s":0,"silent_s":0)");
    record(0.25, R"("event":"start","attempt":"running")");

    auto const times = monitor::attempt_times(scratch.path());
    REQUIRE(times.size() == 3);
    CHECK(times[0].reason == "failed");
    CHECK(times[0].seconds == 20);
    CHECK(times[0].silent_s == 13);
    CHECK(times[0].productive_s == 2);
    CHECK(times[0].checkpoint_s == 0.125);
    CHECK_FALSE(times[1].is_recorded()); // by a version that did not tell when it began
    CHECK(times[2].reason.empty());
    CHECK(times[2].seconds == 4); // its first step is the last that was heard of it
    CHECK(history(scratch.path()).at(0)["end"].is_null()); // who reads changes nothing
    CHECK(monitor::EffectiveTime(times).gaps() ==
          "1 attempt not recorded, 1 wait between attempts not recorded");
}

TEST_CASE("the time between the attempts of an allocation is told, unless clocks contradict") {
    for (auto const& [start, waited] :
         {std::pair{"2026-01-31T11:59:00Z", true}, {"2999-01-31T12:00:00Z", false}}) {
        test::ScratchDir const scratch;
        File::append(scratch / "history.jsonl")
            .append_text(concat(R"({"attempt":"before","start":")", start, R"(","end":")", start,
                                R"(","ranks":4,"job":"12","restart":1,"setup_s":3,"seconds":9,)",
                                R"("first_step":0,"last_step":0,"lost_steps":0,"startup_s":4,)",
                                R"("productive_s":5,"lost_s":0,"checkpoint_s":0,"validation_s":0,)",
                                R"("silent_s":0,"reason":"killed","exit_code":null})", "\n"));
        Attempt(scratch.path(), "next", 0).end("finished");
        auto const lines = history(scratch.path());
        REQUIRE(lines.size() == 2);
        CHECK(lines[1]["waited_s"].is_number() == waited);
        CHECK(lines[1]["effective"].is_number() == waited);
        CHECK(lines[0]["effective"].get<double>() == Approx(5.0 / 9));
    }
}

TEST_CASE("the exit code of a failure is that of its record, and broken lines are skipped") {
    test::ScratchDir const scratch;
    Attempt(scratch.path(), "failed", 0).train_until(4);
    File::append(scratch / "metrics.jsonl")
        .append_text("{\"event\": \"failure\", \"exit_code\": 76, \"time\": \"now\"}\n{\"cut sho");
    File::append(scratch / "history.jsonl").append_text("{\"attempt\": \"cu");
    Attempt(scratch.path(), "next", 3).train_until(4);
    auto const lines = history(scratch.path());
    REQUIRE(lines.size() == 2);
    CHECK(lines[0]["exit_code"] == 76);
    CHECK(lines[0]["reason"] == "failed");
}

TEST_CASE("a line of any length among the records costs little memory") {
    test::ScratchDir const scratch;
    Attempt(scratch.path(), "killed", 0).train_until(9);
    auto const metrics = scratch.path() / "metrics.jsonl";
    std::filesystem::resize_file(metrics, std::uintmax_t{512} << 20); // a hole
    File::append(metrics).append_text("\n");
    rusage before{};
    rusage after{};
    ::getrusage(RUSAGE_SELF, &before);
    Attempt(scratch.path(), "next", 6).train_until(7);
    ::getrusage(RUSAGE_SELF, &after);
    CHECK(history(scratch.path()).at(0)["last_step"] == 8);
    CHECK(after.ru_maxrss - before.ru_maxrss < 256 << 10); // KiB
}
