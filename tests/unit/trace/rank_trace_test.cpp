#include "trace/rank_trace.hpp"
#include "trace/trace_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

#include "catch.hpp"

using namespace lockstep;

namespace {

constexpr std::int64_t us = 1000;

RecordedScope scope(std::string name, ScopeKind kind, std::int64_t begin, std::int64_t end,
                    std::int64_t number = -1) {
    return {.begin_ns = begin * us,
            .end_ns = end * us,
            .number = number,
            .kind = kind,
            .name = std::move(name)};
}

/// A step from 0 to 1000 microseconds as TrainLoop and Engine record it, by the end of its scopes.
RecordedThread step(std::int64_t number, std::int64_t start) {
    auto const at = [start](std::int64_t time) { return start + time; };
    return {.name = "main",
            .index = 0,
            .scopes = {scope("reading data", ScopeKind::phase, at(10), at(60)),
                       scope("forward", ScopeKind::part, at(60), at(200), 0),
                       scope("bucket to the exchange", ScopeKind::handed_over, at(300), at(310), 0),
                       scope("sum of a bucket", ScopeKind::bucket, at(305), at(309), 0),
                       scope("backward", ScopeKind::part, at(200), at(400), 0),
                       scope("forward and backward", ScopeKind::phase, at(5), at(410)),
                       scope("waiting for slower ranks", ScopeKind::imbalance, at(420), at(520)),
                       scope("exposed exchange", ScopeKind::communication, at(520), at(600)),
                       scope("the exchange of gradients", ScopeKind::phase, at(415), at(600)),
                       scope("publishing parameters", ScopeKind::communication, at(800), at(900)),
                       scope("the update", ScopeKind::phase, at(610), at(910)),
                       scope("", ScopeKind::step, at(0), at(1000), number)}};
}

nlohmann::json events_of(trace::TraceText const& text) {
    return nlohmann::json::parse(text.whole({})).at("traceEvents");
}

std::vector<nlohmann::json> named(nlohmann::json const& events, std::string const& name) {
    std::vector<nlohmann::json> found;
    for (auto const& event : events) {
        if (event.at("name") == name) {
            found.push_back(event);
        }
    }
    return found;
}

} // namespace

TEST_CASE("a step's time is told by its parts") {
    auto const steps = trace::step_times(step(7, 100));
    REQUIRE(steps.size() == 1);
    CHECK(steps[0].step == 7);
    CHECK(steps[0].end - steps[0].begin == 1000 * us);
    CHECK(steps[0].data == 50 * us);
    CHECK(steps[0].compute == 355 * us);
    CHECK(steps[0].computed == 510 * us);
    CHECK(steps[0].arrived == 520 * us);
    CHECK(steps[0].waited == 100 * us);
    CHECK(steps[0].communication == 180 * us);
    CHECK(steps[0].update == 200 * us);
    CHECK(trace::step_times({}).empty());
}

TEST_CASE("a rank's timeline is JSON with arrows from buckets and from late ranks") {
    trace::RankActivity activity{.threads = {step(7, 0)}, .operators = {}, .memory = {}};
    activity.operators.push_back({.name = "aten::\"mm\"",
                                  .category = "cpu_op",
                                  .row = trace::TraceText::operators_row,
                                  .begin_ns = 70 * us,
                                  .end_ns = 90 * us});
    auto const text = trace::rank_trace({.rank = 2, .host = "here"}, activity,
                                        {{.rank = 5, .computed_ns = 519 * us}}, 100);
    auto const events = events_of(text);
    REQUIRE(named(events, "waiting for rank 5").size() == 1);
    auto const wait = named(events, "waiting for rank 5")[0];
    CHECK(wait.at("ts") == 420.0);
    CHECK(wait.at("dur") == 100.0);
    CHECK(named(events, "aten::\"mm\"").size() == 1);
    auto const bucket = named(events, "bucket 0");
    REQUIRE(bucket.size() == 2); // its arrow
    CHECK(bucket[0].at("ph") == "s");
    CHECK(bucket[0].at("ts") == 300.0);
    CHECK(bucket[1].at("ph") == "f");
    CHECK(bucket[1].at("ts") == 305.0);
    CHECK(bucket[0].at("id") == bucket[1].at("id"));
    CHECK(bucket[0].at("id").is_number_integer());
    auto const late = named(events, "rank 5 is late");
    REQUIRE(late.size() == 2);
    CHECK(late[0].at("pid") == 6);
    CHECK(late[0].at("tid") == 6); // what it was at
    CHECK(late[1].at("pid") == 3);
    CHECK(late[1].at("tid") == wait.at("tid"));
    CHECK(late[0].at("ts") < 519.0);
    CHECK(late[1].at("ts") > 520.0); // where the wait ends
    CHECK(late[1].at("ts") < 521.0);
    CHECK(named(events, "ProfilerStep#7").size() == 1);
    for (auto const& event : events) {
        CHECK((event.at("ph") != "X" || event.at("dur") >= 0.0));
    }
}

TEST_CASE("nobody waits for a rank where this one was the last, and short waits have no arrow") {
    trace::RankActivity const activity{.threads = {step(7, 0)}, .operators = {}, .memory = {}};
    auto const own = events_of(
        trace::rank_trace({.rank = 2}, activity, {{.rank = 2, .computed_ns = 420 * us}}, 100));
    CHECK(named(own, "waiting for slower ranks").size() == 1);
    CHECK(named(own, "rank 2 is late").empty());
}

TEST_CASE("an arrow does not lead back in time where clocks are not exact") {
    trace::RankActivity const activity{.threads = {step(7, 0)}, .operators = {}, .memory = {}};
    auto const late =
        named(events_of(trace::rank_trace({.rank = 2}, activity,
                                          {{.rank = 5, .computed_ns = 523 * us}}, 100)),
              "rank 5 is late");
    REQUIRE(late.size() == 2);
    CHECK(late[0].at("ts") < late[1].at("ts"));
}

TEST_CASE("no thread but the main one has its process's number") {
    for (int const rank : {0, 1, 3, 89, 99, 9999}) {
        trace::TraceText text({.rank = rank, .host = "h"});
        for (std::size_t const index : {0, 1, 2, 4}) {
            text.add(RecordedThread{.name = "thread",
                                    .index = index,
                                    .scopes = {scope(std::to_string(index), ScopeKind::part, 1, 2),
                                               scope("wait", ScopeKind::imbalance, 1, 2),
                                               scope("away", ScopeKind::travelling, 1, 2, 0)}});
        }
        text.add({.name = "operator",
                  .category = "cpu_op",
                  .row = trace::TraceText::operators_row,
                  .begin_ns = 1,
                  .end_ns = 2});
        for (auto const& event : events_of(text)) {
            bool const is_main = event.at("ph") == "X" && event.at("name") == "0";
            CHECK(event.at("tid") != 0);
            CHECK((event.at("ph") != "X" || (event.at("tid") == rank + 1) == is_main));
        }
    }
}

TEST_CASE("of too many operators the longest stay") {
    trace::RankActivity activity;
    for (std::int64_t i = 0; i < 100; ++i) {
        activity.operators.push_back({.name = std::to_string(i),
                                      .category = "cpu_op",
                                      .row = trace::TraceText::operators_row,
                                      .begin_ns = i * us,
                                      .end_ns = i * us + i});
    }
    auto const events = events_of(trace::rank_trace({}, activity, {}, 10));
    CHECK(named(events, "99").size() == 1);
    CHECK(named(events, "90").size() == 1);
    CHECK(named(events, "89").empty());
}

TEST_CASE("a correction moves all times, and leaves no negative duration") {
    trace::RankActivity activity{.threads = {step(1, 0)},
                                 .operators = {{.name = "x", .begin_ns = 5000, .end_ns = 5001}},
                                 .memory = {{.time_ns = 5000, .bytes = 1, .address = 1}}};
    trace::ClockCorrection const clock({.at_ns = 0, .offset_ns = 1000},
                                       {.at_ns = 1000, .offset_ns = 1500});
    trace::correct(activity, clock);
    CHECK(activity.operators[0].begin_ns == 5000 - 1000 - 2500);
    CHECK(activity.operators[0].end_ns >= activity.operators[0].begin_ns);
    CHECK(activity.memory[0].time_ns == 1500);
    CHECK(activity.threads[0].scopes.back().begin_ns == -1000);
}

TEST_CASE("what overlaps on a stream gets a row of its own") {
    auto const on_device = [](std::string name, std::int64_t begin, std::int64_t end) {
        return trace::Operator{.name = std::move(name),
                               .category = "kernel",
                               .row = 7,
                               .begin_ns = begin,
                               .end_ns = end,
                               .on_device = true,
                               .device = 0,
                               .stream = 3};
    };
    std::vector<trace::Operator> operators{
        on_device("after both", 130, 140),
        {.name = "on the host", .row = 8, .begin_ns = 5, .end_ns = 15},
        {.name = "on the host too", .row = 8, .begin_ns = 10, .end_ns = 20}, // of no concern
        on_device("outer", 0, 100),
        on_device("within", 10, 50),
        on_device("from within", 40, 60),
        on_device("beyond", 90, 120)};
    trace::separate_overlapping(operators);
    auto const row_of = [&](std::string const& name) {
        return std::ranges::find(operators, name, &trace::Operator::name)->row;
    };
    CHECK(row_of("outer") == 7);
    CHECK(row_of("within") == 7);
    CHECK(row_of("from within") == 9);
    CHECK(row_of("beyond") == 9);
    CHECK(row_of("after both") == 7);
    CHECK(row_of("on the host") == 8);
    CHECK(row_of("on the host too") == 8);

    auto const top = trace::top_operators(operators, 10);
    auto const beyond = std::ranges::find(top, "beyond", &trace::OperatorTotal::name);
    auto const outer = std::ranges::find(top, "outer", &trace::OperatorTotal::name);
    CHECK(beyond->self_ns == 30);
    CHECK(outer->self_ns == 60); // without "within" alone

    auto const events = events_of(trace::rank_trace({}, {{}, operators, {}}, {}, 10));
    auto const rows = named(events, "thread_name");
    auto const is_named = [&](std::string const& name) {
        return std::ranges::any_of(
            rows, [&](auto const& row) { return row.at("args").at("name") == name; });
    };
    CHECK(is_named("device 0 stream 3"));
    CHECK(is_named("device 0 stream 3, overlapping"));
}

TEST_CASE("operators are counted without those within them") {
    std::vector<trace::Operator> const operators{
        {.name = "conv", .row = 1, .begin_ns = 0, .end_ns = 100},
        {.name = "gemm", .row = 1, .begin_ns = 10, .end_ns = 40},
        {.name = "gemm", .row = 1, .begin_ns = 50, .end_ns = 90},
        {.name = "copy", .row = 1, .begin_ns = 60, .end_ns = 65},
        {.name = "conv", .row = 2, .begin_ns = 20, .end_ns = 30}};
    auto const top = trace::top_operators(operators, 2);
    REQUIRE(top.size() == 2);
    CHECK(top[0].name == "gemm");
    CHECK(top[0].calls == 2);
    CHECK(top[0].self_ns == 65);
    CHECK(top[0].total_ns == 70);
    CHECK(top[1].name == "conv");
    CHECK(top[1].self_ns == 40);
    CHECK(top[1].calls == 2);
}

TEST_CASE("memory is told by the part of the step that allocated it") {
    trace::RankActivity const activity{
        .threads = {step(1, 0)},
        .operators = {},
        .memory = {{.time_ns = 100 * us, .bytes = 1000, .address = 1},
                   {.time_ns = 250 * us, .bytes = 50, .address = 2},
                   {.time_ns = 260 * us, .bytes = -1000, .address = 1},
                   {.time_ns = 270 * us, .bytes = -7, .address = 99}}}; // of before
    auto const counters = named(events_of(trace::rank_trace({}, activity, {}, 10)), "host memory");
    auto const parts = trace::memory_by_part(activity);
    REQUIRE(parts.size() == 2);
    CHECK(std::string(parts[0].part) == "activations (forward)");
    CHECK(parts[0].max == 1000);
    CHECK(parts[1].at_peak == 50);
    REQUIRE(counters.size() == 4); // the first: where the steps begin
    CHECK(counters[2].at("args").at("activations (forward)") == 1000);
    CHECK(counters[2].at("args").at("gradients (backward)") == 50);
    CHECK(counters[3].at("args").at("activations (forward)") == 0);
}

TEST_CASE("memory of the host and of the device are told apart, beside what the run holds") {
    trace::RankActivity const activity{
        .threads = {step(1, 0)},
        .operators = {},
        .memory = {{.time_ns = 100 * us, .bytes = 1000, .address = 1, .on_device = true},
                   {.time_ns = 110 * us, .bytes = 30, .address = 1},
                   {.time_ns = 260 * us, .bytes = -1000, .address = 1, .on_device = true},
                   {.time_ns = 270 * us, .bytes = 40, .address = 2}},
        .held = {.parameters = 400, .gradients = 500, .optimizer = 800, .on_device = true}};
    auto const events = events_of(trace::rank_trace({}, activity, {}, 10));
    auto const device = named(events, "device memory");
    REQUIRE(device.size() == 3);
    CHECK(device[0].at("ts") == 0.0);
    for (auto const& each : device) {
        CHECK(each.at("args").at("parameters") == 400);
        CHECK(each.at("args").at("gradients") == 500);
        CHECK(each.at("args").at("optimizer state") == 800);
    }
    CHECK(device[1].at("args").at("activations (forward)") == 1000);
    CHECK(device[2].at("args").at("activations (forward)") == 0);
    auto const host = named(events, "host memory");
    REQUIRE(host.size() == 2);
    CHECK_FALSE(host[0].at("args").contains("parameters"));
    CHECK(host[1].at("args").at("activations (forward)") == 30); // not freed by the device's
    auto const parts = trace::memory_by_part(activity);
    REQUIRE(parts.size() == 3);
    CHECK_FALSE(parts[0].on_device);
    CHECK(parts[0].at_peak == 30);
    CHECK(parts[1].at_peak == 40);
    CHECK(parts[2].on_device);
    CHECK(parts[2].at_peak == 1000);
}

TEST_CASE("an open scope, a name that is no UTF-8 and a travelling bucket make valid JSON") {
    RecordedThread thread{.name = "a\"b\xff", .index = 3, .scopes = {}};
    thread.scopes.push_back(scope("open", ScopeKind::part, 1, 2));
    thread.scopes.back().is_open = true;
    thread.scopes.push_back(scope("away", ScopeKind::travelling, 1, 9, 4));
    trace::TraceText text({.rank = 0, .host = "h"});
    text.add(thread);
    auto const whole = nlohmann::json::parse(text.whole_of_rank({{"a", "b"}}, 4));
    CHECK(whole.at("distributedInfo").at("world_size") == 4);
    CHECK(whole.at("otherData").at("a") == "b");
    auto const away = named(whole.at("traceEvents"), "away")[0].at("tid");
    auto const rows = named(whole.at("traceEvents"), "thread_name");
    CHECK(std::ranges::any_of(rows, [&](auto const& row) {
        return row.at("tid") == away && row.at("args").at("name") == "bucket 4";
    }));
    CHECK(named(whole.at("traceEvents"), "open")[0].at("args").at("open") == true);
}
