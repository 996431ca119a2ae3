#include "base/file.hpp"
#include "monitor/root_cause.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <fcntl.h>
#include <future>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using monitor::RootCause;

namespace {

/// What is written on standard error While it exists.
class Captured {
  public:
    Captured() : former_(std::cerr.rdbuf(text_.rdbuf())) {}
    Captured(Captured const&) = delete;
    Captured& operator=(Captured const&) = delete;
    ~Captured() { std::cerr.rdbuf(former_); }
    std::string text() const { return text_.str(); }

  private:
    std::ostringstream text_;
    std::streambuf* former_;
};

Error const failure(ExitCode::rank_lost, {"no file \xff\xfe", "a path is any bytes", "none"});

} // namespace

TEST_CASE("a cause whose text is no UTF-8 is told and recorded") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "log.txt", "");
    RootCause cause;
    cause.set_run(scratch.path(), [] { return std::nullopt; });
    cause.set_on_record();
    Captured const captured;
    cause.tell("rank 3", failure);
    CHECK(captured.text().find("lockstep: root cause: rank 3: no file") != std::string::npos);
    CHECK(read_text(scratch / "log.txt") == captured.text());
    auto const record = nlohmann::json::parse(read_text(scratch / "metrics.jsonl"));
    CHECK(record["event"] == "failure");
    CHECK(record["cause"] == "rank 3");
}

TEST_CASE("a mistake is told with the places of the values that it is about, and of no others") {
    RootCause cause;
    cause.set_places({{"data.train", {"set.h5", "deck.ini:3", true}},
                      {"data.shuffle", {"none", "deck.ini:4", true}},
                      {"data.cache", {"none", "deck.ini:5", true}},
                      {"model.name", {"mlp", "deck.ini:7", true}},
                      {"distill.teacher", {"none", "deck.ini:9", true}}});
    Captured const captured;
    cause.tell("", Error(ExitCode::usage, {"model.name was changed", "it was cnn",
                                           "Start over with --checkpoint.resume none"}));
    cause.tell("", Error(ExitCode::data, {"cannot read set.h5", "it is short", "Copy it"}));
    cause.tell("", Error(ExitCode::no_input, {"cannot open none", "no such file", "Check it"}));
    CHECK(captured.text().find(" (model.name: deck.ini:7)\n") != std::string::npos);
    CHECK(captured.text().find(" (distill.teacher: deck.ini:9)\n") != std::string::npos);
    CHECK(captured.text().find(" (data.train: deck.ini:3)\n") != std::string::npos);
}

TEST_CASE("a run directory that cannot be looked into costs the record, not the line") {
    test::ScratchDir const scratch;
    RootCause cause;
    // A name longer than any file system takes: looking it up fails, which is not "not there".
    cause.set_run(scratch / std::string(1000, 'x'), [] { return std::nullopt; });
    Captured const captured;
    cause.tell("rank 3", failure);
    cause.note("a note\n");
    CHECK(captured.text().find("rank 3: no file") != std::string::npos);
    CHECK(captured.text().find("a note") != std::string::npos);
}

TEST_CASE("whose run it is may be unknown: the line is told all the same") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "log.txt", "");
    RootCause cause;
    cause.set_run(scratch.path(),
                  []() -> std::optional<Error> { throw std::runtime_error("no such attempt"); });
    Captured const captured;
    cause.tell("rank 3", failure);
    CHECK(captured.text().find("rank 3: no file") != std::string::npos);
    CHECK(read_text(scratch / "log.txt").empty());
}

TEST_CASE("what befalls an attempt after a newer one took the directory over is that") {
    RootCause cause;
    CHECK(cause.seen(failure).code() == ExitCode::rank_lost);
    bool newer = false;
    cause.set_run("run", [&] {
        return newer ? std::optional<Error>({ExitCode::superseded, {"a", "b", "c"}}) : std::nullopt;
    });
    CHECK(cause.seen(failure).code() == ExitCode::rank_lost);
    newer = true;
    CHECK(cause.seen(failure).code() == ExitCode::superseded);
    cause.set_run("run",
                  []() -> std::optional<Error> { throw std::runtime_error("no such attempt"); });
    CHECK(cause.seen(failure).code() == ExitCode::rank_lost);
}

TEST_CASE("a launcher that reads nothing does not keep a rank that tells how it fails") {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    REQUIRE(::fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    std::array<char, 4096> const page{};
    while (::write(ends[1], page.data(), page.size()) > 0) {
    }
    REQUIRE(::fcntl(ends[1], F_SETFL, 0) == 0);
    test::ScratchDir const scratch;
    write_text_durably(scratch / "log.txt", "");
    RootCause cause;
    cause.set_run(scratch.path(), [] { return std::nullopt; });
    int const former = ::dup(STDERR_FILENO);
    REQUIRE(::dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    auto told = std::async(std::launch::async, [&] { cause.tell("rank 1", failure); });
    bool const ended = told.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    ::dup2(former, STDERR_FILENO);
    ::close(ends[0]); // a rank that waits gets an error then
    told.wait();
    CHECK(ended);
    CHECK(read_text(scratch / "log.txt").find("rank 1") != std::string::npos);
}
