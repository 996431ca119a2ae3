#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/text.hpp"
#include "lockstep/monitor/metrics_file.hpp"
#include "lockstep/monitor/run_records.hpp"

#include <cmath>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

std::string step_line(std::int64_t step, double loss) {
    return concat("{\"event\": \"step\", \"step\": ", step, ", \"loss\": ", loss,
                  ", \"elapsed_s\": ", step, "}\n");
}

std::vector<std::pair<std::int64_t, double>> losses(monitor::RunRecords const& run) {
    std::vector<std::pair<std::int64_t, double>> all;
    for (auto const& step : run.steps) {
        all.emplace_back(step.step, step.loss);
    }
    return all;
}

using Losses = std::vector<std::pair<std::int64_t, double>>;

} // namespace

TEST_CASE("what a run reports is read back") {
    test::ScratchDir const scratch;
    {
        monitor::MetricsFile metrics(scratch / "metrics.jsonl");
        train::Started started;
        started.model = "cnn";
        started.host_of_rank = {"a", "b"};
        started.replicas = 4;
        started.batch = 8;
        started.accumulate = 2;
        started.memory_of_rank = {"parameters at 0x40", "parameters at 0x80"};
        metrics.on(started);
        metrics.on(train::Step{.step = 1,
                               .loss = std::nan(""),
                               .samples = 64,
                               .logged = true,
                               .step_s = 0.5,
                               .straggler = 1,
                               .straggler_s = 0.1,
                               .weight_hash = "00ffffffffffffff",
                               .diverged = "replica 2"});
        metrics.on(train::Measured{.set = "validation",
                                   .step = 1,
                                   .loss = 0.5,
                                   .metrics = {{"accuracy", 0.75}},
                                   .best = true,
                                   .best_metric = "accuracy"});
        metrics.on(train::Epoch{.epoch = 1, .step = 1, .loss = 2, .accuracy = 0.25});
        metrics.on(train::CheckpointWritten{.step = 1, .file = "f", .bytes = 10, .seconds = 2});
        metrics.on(train::Ended{.reason = "finished",
                                .step = 2,
                                .steps_done = 2,
                                .samples_per_s = 128,
                                .best_metric = "accuracy",
                                .best = 0.75,
                                .best_step = 1});
    }
    monitor::RunRecords run(scratch.path());
    CHECK(run.read());
    CHECK_FALSE(run.read());
    CHECK(run.name() == scratch.path().filename());
    CHECK(run.model == "cnn");
    CHECK(run.ranks == 2);
    CHECK(run.batch == 64);
    REQUIRE(run.steps.size() == 1);
    CHECK(std::isnan(run.steps[0].loss));
    CHECK(run.steps[0].samples_per_s == 128);
    CHECK(run.steps[0].straggler == 1);
    CHECK(run.steps[0].straggler_ms == 100);
    CHECK(run.steps[0].weight_hash == 0x00ffffffffffffff);
    CHECK(run.steps[0].diverged == "replica 2");
    CHECK(run.attempts.at(0).memory.at(1) == "parameters at 0x80");
    REQUIRE(run.validations.size() == 1);
    CHECK(run.validations[0].metrics == std::map<std::string, double>{{"accuracy", 0.75}});
    CHECK(run.validations[0].best);
    REQUIRE(run.epochs.size() == 1);
    CHECK(run.epochs[0].metrics.at("accuracy") == 0.25);
    CHECK(run.checkpoints.at(0).seconds == 2);
    CHECK(run.attempts.at(0).reason == "finished");
    CHECK(run.last_step() == 2);
    CHECK(run.best_step == 1);
    CHECK(run.mean_samples_per_s == 128);
}

TEST_CASE("how an attempt ended stands, whatever befalls a rank that leaves") {
    test::ScratchDir const scratch;
    auto const file = File::append(scratch / "metrics.jsonl");
    std::string const failure =
        "{\"event\": \"failure\", \"cause\": \"rank 1\", \"message\": \"lost\"}\n";
    file.append_text(
        "{\"event\": \"start\"}\n" + step_line(1, 1) +
        "{\"event\": \"end\", \"reason\": \"finished\", \"step\": 1, \"steps_done\": 1}\n");
    file.append_text(failure);
    monitor::RunRecords run(scratch.path());
    run.read();
    CHECK(run.attempts.at(0).reason == "finished");
    CHECK(run.attempts.at(0).cause.empty());
    file.append_text("{\"event\": \"start\"}\n" + failure);
    run.read();
    CHECK(run.attempts.at(1).reason == "failed");
}

TEST_CASE("a later attempt's word counts where it did steps again") {
    test::ScratchDir const scratch;
    auto const file = File::append(scratch / "metrics.jsonl");
    file.append_text("{\"event\": \"start\"}\n");
    for (int step = 1; step <= 5; ++step) {
        file.append_text(step_line(step, 1));
    }
    file.append_text("{\"event\": \"validation\", \"step\": 4, \"loss\": 1}\n");
    file.append_text("{\"event\": \"start\"}\n{\"event\": \"resume\", \"step\": 2}\n");
    monitor::RunRecords run(scratch.path());
    run.read();
    CHECK(losses(run) == Losses{{1, 1}, {2, 1}});
    CHECK(run.validations.empty());
    file.append_text(step_line(3, 7));
    CHECK(run.read());
    CHECK(losses(run) == Losses{{1, 1}, {2, 1}, {3, 7}});
    CHECK(run.attempts.size() == 2);
    CHECK(run.seconds() == 8); // 5 of the first, 3 of the second
    // started over without a checkpoint, there is no record of a resume.
    file.append_text("{\"event\": \"start\"}\n" + step_line(1, 9));
    run.read();
    CHECK(losses(run) == Losses{{1, 9}});
}

TEST_CASE("a straggler is a rank of the run") {
    test::ScratchDir const scratch;
    auto const file = File::append(scratch / "metrics.jsonl");
    file.append_text("{\"event\": \"start\", \"ranks\": 4}\n");
    int step = 0;
    for (auto const& [told, read] : std::vector<std::pair<std::string, int>>{
             {"3", 3}, {"4", -1}, {"1099511627776", -1}, {"4294967297", -1}, {"-7", -1}}) {
        file.append_text("{\"event\": \"step\", \"step\": " + std::to_string(++step) +
                         ", \"straggler\": " + told + "}\n");
        monitor::RunRecords run(scratch.path());
        run.read();
        CAPTURE(told);
        CHECK(run.steps.back().straggler == read);
    }
}

TEST_CASE("half lines wait for their end, broken ones are skipped") {
    test::ScratchDir const scratch;
    auto const file = File::append(scratch / "metrics.jsonl");
    auto const line = step_line(2, 3);
    file.append_text(step_line(1, 1) + line.substr(0, 20));
    monitor::RunRecords run(scratch.path());
    CHECK(run.read());
    CHECK_FALSE(run.read());
    CHECK(losses(run) == Losses{{1, 1}});
    file.append_text(line.substr(20));
    CHECK(run.read());
    CHECK(losses(run) == Losses{{1, 1}, {2, 3}});
    // A killed run's half line, on which the next attempt continues; other things that are no
    // records.
    file.append_text("{\"event\": \"step\", \"st{\"event\": \"start\"}\n[1]\n\xff\xfe\n\n{}\n" +
                     std::string("{\"event\": \"step\", \"step\": \"x\", \"loss\": [1]}\n") +
                     step_line(3, 4));
    CHECK(run.read());
    CHECK(run.bad_lines == 4);
    CHECK(losses(run) == Losses{{1, 1}, {2, 3}, {3, 4}}); // the step without a number drops none
}

TEST_CASE("a resumed run's first record is whole where the last one before was cut") {
    test::ScratchDir const scratch;
    File::append(scratch / "metrics.jsonl")
        .append_text("{\"event\": \"start\"}\n" + step_line(1, 1) + "{\"event\": \"st");
    monitor::MetricsFile metrics(scratch / "metrics.jsonl");
    metrics.on(train::Started{});
    monitor::RunRecords run(scratch.path());
    run.read();
    CHECK(run.bad_lines == 1);
    CHECK(run.attempts.size() == 2);
}

TEST_CASE("a file that was started over is read again, one that is missing is named") {
    test::ScratchDir const scratch;
    monitor::RunRecords run(scratch.path());
    CHECK(test::error_of([&] { run.read(); }).code() == ExitCode::no_input);
    File::append(scratch / "metrics.jsonl").append_text(step_line(1, 1) + step_line(2, 1));
    run.read();
    std::filesystem::rename(scratch / "metrics.jsonl", scratch / "old");
    File::append(scratch / "metrics.jsonl").append_text(step_line(1, 5) + step_line(2, 5));
    CHECK(run.read());
    CHECK(losses(run) == Losses{{1, 5}, {2, 5}});
}

TEST_CASE("an attempt that took no step changes nothing that the run is known by") {
    test::ScratchDir const scratch;
    auto const file = File::append(scratch / "metrics.jsonl");
    auto const start = [](int ranks) {
        return concat("{\"event\": \"start\", \"ranks\": ", ranks, ", \"replicas\": 4}\n");
    };
    std::string const finished = "{\"event\": \"end\", \"reason\": \"finished\", \"step\": 2, "
                                 "\"steps_done\": 2, \"samples_per_s\": 64}\n";
    file.append_text(start(4) + step_line(1, 1) + step_line(2, 1) + finished);
    std::string const resumed = "{\"event\": \"resume\", \"step\": 2}\n";
    SECTION("one that found the run finished is not listed") {
        file.append_text(start(1) + resumed +
                         "{\"event\": \"end\", \"reason\": \"already finished\", \"step\": 2}\n");
        monitor::RunRecords run(scratch.path());
        run.read();
        CHECK(run.ranks == 4);
        CHECK(run.attempts.size() == 1);
        CHECK(run.attempts.back().reason == "finished");
        CHECK(run.mean_samples_per_s == 64);
    }
    SECTION("one that failed before its first step is listed, and no more") {
        file.append_text(start(1) + resumed + "{\"event\": \"failure\", \"message\": \"x\"}\n");
        monitor::RunRecords run(scratch.path());
        run.read();
        CHECK(run.ranks == 4);
        CHECK(run.attempts.size() == 2);
        CHECK(run.attempts.back().reason == "failed");
    }
    SECTION("one that only tested is listed, and no more") {
        file.append_text(start(2) + resumed + "{\"event\": \"test\", \"step\": 2, \"loss\": 1}\n" +
                         "{\"event\": \"end\", \"reason\": \"finished\", \"step\": 2}\n");
        monitor::RunRecords run(scratch.path());
        run.read();
        CHECK(run.ranks == 4);
        CHECK(run.tests.size() == 1);
    }
    SECTION("one that learns counts from its first step on") {
        file.append_text(start(1) + resumed + step_line(3, 1));
        monitor::RunRecords run(scratch.path());
        run.read();
        CHECK(run.ranks == 1);
        file.append_text(start(2) + "{\"event\": \"end\", \"reason\": \"SIGTERM\", \"step\": 3}\n");
        run.read();
        CHECK(run.ranks == 1);
    }
}

TEST_CASE("an attempt whose start line is lost is shown by what is left of it") {
    test::ScratchDir const scratch;
    File::append(scratch / "metrics.jsonl")
        .append_text(step_line(4, 0.5) + "{\"event\": \"end\", \"reason\": \"finished\", "
                                         "\"step\": 4, \"steps_done\": 4}\n");
    monitor::RunRecords run(scratch.path());
    run.read();
    REQUIRE(run.attempts.size() == 1);
    CHECK(run.attempts[0].reason == "finished");
    CHECK(run.last_step() == 4);
}

TEST_CASE("a file of another kind holds no records of a run") {
    test::ScratchDir const scratch;
    auto const other = scratch / "deck.ini";
    File::append(other).append_text("[data]\ntrain = x\n");
    monitor::RunRecords run(other);
    run.read();
    CHECK(test::error_of([&] { run.require_of_a_run(other); }).code() == ExitCode::data);
    File::append(scratch / "metrics.jsonl").append_text("");
    monitor::RunRecords young(scratch.path());
    young.read();
    CHECK_NOTHROW(young.require_of_a_run(scratch.path())); // a run that is starting
}

namespace {

train::Resources used(double user_s, std::optional<double> joules) {
    train::Resources resources{
        .seconds = 10, .ranks = 2, .user_s = user_s, .system_s = 1, .disk_read = 4096};
    resources.processor_joules = joules;
    resources.of_rank = {
        {.rank = 0, .user_s = user_s, .device_utilization = 75, .device_joules = joules},
        {.rank = 1}};
    return resources;
}

} // namespace

TEST_CASE("what attempts used is that of their ends, or of their epochs where they have none") {
    test::ScratchDir const scratch;
    {
        monitor::MetricsFile metrics(scratch / "metrics.jsonl");
        metrics.on(train::Started{.attempt = "1", .host_of_rank = {"a", "a"}});
        metrics.on(train::Epoch{.epoch = 1, .step = 1, .resources = used(5, std::nullopt)});
        metrics.on(train::Epoch{.epoch = 2, .step = 2, .resources = used(7, std::nullopt)});
        metrics.on(train::Started{.attempt = "2", .host_of_rank = {"a", "a"}});
        metrics.on(train::Epoch{.epoch = 3, .step = 3, .resources = used(20, 100)});
        metrics.on(train::Ended{
            .reason = "finished", .step = 3, .steps_done = 1, .resources = used(30, 360)});
    }
    monitor::RunRecords run(scratch.path());
    run.read();
    REQUIRE(run.attempts.size() == 2);
    CHECK(run.attempts[0].resources.processor_s == Approx(14));
    CHECK(run.attempts[1].resources.processor_s == Approx(31));
    CHECK_FALSE(std::isfinite(run.attempts[0].resources.joules()));
    CHECK(run.resources().processor_s == Approx(45));
    CHECK(run.resources().joules() == Approx(360));
    CHECK(run.resources().disk_read_bytes == Approx(3 * 4096));
    CHECK(run.epochs.back().metrics.empty()); // none of it is a metric
    auto const lines = split(read_text(scratch / "metrics.jsonl"), '\n');
    auto const ranks = JsonLine(lines.at(4)).record("resources").records("ranks"); // epoch 3
    REQUIRE(ranks.size() == 2);
    CHECK(ranks[0].number("device_utilization") == 75);
    CHECK(ranks[0].number("device_joules") == 100);
    CHECK(std::isnan(ranks[1].number("device_utilization"))); // it has no device
}

TEST_CASE("a timeline's tables are read back, and hostile ones do no harm") {
    test::ScratchDir const scratch;
    {
        monitor::MetricsFile metrics(scratch / "metrics.jsonl");
        metrics.on(train::Started{.attempt = "1", .host_of_rank = {"a", "a"}});
        metrics.on(train::Profiled{.first = 3,
                                   .last = 6,
                                   .file = "profile/steps-3-6.json.gz",
                                   .operators = {{"aten::mm", 4, 0.5, 0.25, false}},
                                   .rank_times = {{.rank = 1, .waited_s = 2, .waited_for = 0}},
                                   .clock_offset_s = {0, 1},
                                   .clock_error_s = 1e-6});
    }
    File::append(scratch / "metrics.jsonl")
        .append_text("{\"event\": \"profile\", \"step\": 9, \"operators\": [1, null, {\"name\": "
                     "\"\\u001b[2J\", \"calls\": \"x\"}], \"ranks\": {}}\n"
                     "{\"event\": \"end\", \"resources\": [], \"reason\": \"finished\"}\n");
    monitor::RunRecords run(scratch.path());
    run.read();
    REQUIRE(run.profiles.size() == 2);
    auto const& profile = run.profiles[0];
    CHECK(profile.first_step == 3);
    CHECK(profile.step == 6);
    REQUIRE(profile.operators.size() == 1);
    CHECK(profile.operators[0].name == "aten::mm");
    CHECK(profile.operators[0].calls == 4);
    CHECK(profile.operators[0].self_ms == Approx(250));
    REQUIRE(profile.ranks.size() == 1);
    CHECK(profile.ranks[0].waited_for == 0);
    CHECK(profile.ranks[0].waited_ms == Approx(2000));
    REQUIRE(run.profiles[1].operators.size() == 1);
    CHECK(run.profiles[1].operators[0].name == "\\x1b[2J");
    CHECK(run.profiles[1].ranks.empty());
    CHECK_FALSE(run.resources().is_known());
}
