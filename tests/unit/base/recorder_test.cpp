#include "base/recorder.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace lockstep;

namespace {

RecordedThread only(std::vector<RecordedThread> const& threads, std::string const& name) {
    for (auto const& thread : threads) {
        if (thread.name == name) {
            return thread;
        }
    }
    return {};
}

} // namespace

TEST_CASE("scopes are recorded as they end, with those within them before") {
    auto const recorder = std::make_shared<Recorder>();
    Recorder::Join const joined(recorder, "main");
    {
        Scope const outer("outer", 7, ScopeKind::step);
        Scope const inner("inner");
    }
    auto const scopes = only(recorder->read_all(), "main").scopes;
    REQUIRE(scopes.size() == 2);
    CHECK(scopes[0].name == "inner");
    CHECK(scopes[1].name == "outer");
    CHECK(scopes[1].number == 7);
    CHECK(scopes[1].kind == ScopeKind::step);
    CHECK(scopes[1].begin_ns <= scopes[0].begin_ns);
    CHECK(scopes[0].begin_ns <= scopes[0].end_ns);
    CHECK(scopes[0].end_ns <= scopes[1].end_ns);
}

TEST_CASE("a listener hears of scopes as they begin and end, with their numbers") {
    static std::vector<std::string> heard;
    heard.clear();
    constexpr Recorder::Listener listener{[](char const* name, std::int64_t number) {
                                              heard.push_back(name + std::string(" ") +
                                                              std::to_string(number));
                                          },
                                          [] { heard.emplace_back("end"); }};
    auto const recorder = std::make_shared<Recorder>();
    Recorder::Join const joined(recorder, "main");
    {
        Scope const before("before");
        recorder->set_listener(&listener);
        Scope const outer("step", 7, ScopeKind::step);
        Scope const inner(std::string(100, 'x'));
    }
    recorder->set_listener(nullptr);
    Scope const after("after");
    CHECK(heard == std::vector<std::string>{"step 7", std::string(31, 'x') + " -1", "end", "end"});
}

TEST_CASE("a scope that is open is told as such, and its name is cut") {
    auto const recorder = std::make_shared<Recorder>();
    Recorder::Join const joined(recorder, "main");
    Scope const scope("a name of more than thirty-one letters");
    auto const scopes = only(recorder->read_all(), "main").scopes;
    REQUIRE(scopes.size() == 1);
    CHECK(scopes[0].is_open);
    CHECK(scopes[0].name == "a name of more than thirty-one ");
    CHECK(scopes[0].end_ns >= scopes[0].begin_ns);
}

TEST_CASE("the oldest scopes make room, and a cursor reads each scope once") {
    auto const recorder = std::make_shared<Recorder>();
    Recorder::Join const joined(recorder, "main");
    auto cursor = recorder->newest();
    for (std::int64_t i = 0; i < 10; ++i) {
        Scope const scope("x", i);
    }
    CHECK(only(recorder->read(cursor), "main").scopes.size() == 10);
    CHECK(only(recorder->read(cursor), "main").scopes.empty());
    auto const many = static_cast<std::int64_t>(Recorder::main_scopes) * 2 + 5;
    for (std::int64_t i = 0; i < many; ++i) {
        Scope const scope("x", i);
    }
    auto const scopes = only(recorder->read(cursor), "main").scopes;
    REQUIRE(scopes.size() == Recorder::main_scopes - 1);
    CHECK(scopes.back().number == many - 1);
    CHECK(scopes.front().number == many - static_cast<std::int64_t>(scopes.size()));
}

TEST_CASE("threads have rings of their own, which later ones take over; others are not recorded") {
    auto const recorder = std::make_shared<Recorder>();
    Recorder::Join const joined(recorder, "main");
    std::thread([] { Scope const scope("nobody records this"); }).join();
    for (int i = 0; i < 3; ++i) {
        std::thread([recorder] {
            Recorder::Join const own(recorder, "worker");
            Scope const scope("work");
        }).join();
    }
    auto const threads = recorder->read_all();
    REQUIRE(threads.size() == 2);
    CHECK(threads[0].scopes.empty());
    CHECK(threads[1].scopes.size() == 3);
}

TEST_CASE("more threads than there are rings are not recorded, and harm nothing") {
    auto const recorder = std::make_shared<Recorder>();
    std::atomic<int> started{0};
    std::vector<std::thread> threads;
    constexpr int many = static_cast<int>(Recorder::max_threads) + 5;
    for (int i = 0; i < many; ++i) {
        threads.emplace_back([&, i] {
            Recorder::Join const own(recorder, "thread " + std::to_string(i));
            ++started;
            while (started < many) {
                std::this_thread::yield();
            }
            Scope const scope("work");
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(recorder->read_all().size() == Recorder::max_threads);
}

TEST_CASE("whoever reads while scopes are written gets whole scopes, each after the one before") {
    auto const recorder = std::make_shared<Recorder>();
    std::atomic<bool> ready{false};
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        Recorder::Join const own(recorder, "writer");
        for (std::int64_t i = 0; !stop; ++i) {
            // Number and time belong together, in a ring that wraps all the time.
            record_scope(i % 2 == 0 ? "even" : "odd", {.begin_ns = 2 * i,
                                                       .end_ns = 2 * i + 1,
                                                       .number = i,
                                                       .kind = ScopeKind::part,
                                                       .name = {}});
            ready = true;
        }
    });
    while (!ready) {
        std::this_thread::yield();
    }
    std::int64_t wrong = 0;
    std::size_t seen = 0;
    for (int round = 0; round < 30 || seen < 1000; ++round) {
        std::int64_t before = -1;
        for (auto const& scope : only(recorder->read_all(), "writer").scopes) {
            bool const whole = scope.begin_ns == 2 * scope.number &&
                               scope.end_ns == 2 * scope.number + 1 &&
                               scope.name == (scope.number % 2 == 0 ? "even" : "odd");
            wrong += whole && (before < 0 || scope.number == before + 1) ? 0 : 1;
            before = scope.number;
            ++seen;
        }
    }
    stop = true;
    writer.join();
    CHECK(wrong == 0);
}

TEST_CASE("a skew moves the clock") {
    Recorder const right;
    Recorder const wrong(10);
    auto const before = right.now_ns();
    auto const difference = wrong.now_ns() - before;
    CHECK(difference >= 10'000'000'000);
    CHECK(difference < 20'000'000'000);
    auto const shared = std::make_shared<Recorder>(10);
    Recorder::Join const joined(shared, "main");
    Scope const scope("x");
    CHECK(only(shared->read_all(), "main").scopes.at(0).begin_ns >= before + 10'000'000'000);
}
