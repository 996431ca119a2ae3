#include "base/text.hpp"
#include "serve/run.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep::serve;
using lockstep::test::ScratchDir;

namespace {

constexpr std::size_t part = 4 << 20; ///< that a read takes

std::string record(int step, std::string const& more) {
    return lockstep::concat(R"({"event":"step","step":)", step, R"(,"loss":)", step,
                            R"(.5,"time":"1970-01-01T00:00:00Z","hash":")", more, "\"}\n");
}

/// The records of a run of many steps; the size of each is about that of `more`.
void write_records(std::filesystem::path const& run, int steps, std::string const& more) {
    std::ofstream file(run / "metrics.jsonl");
    file << "{\"event\":\"start\",\"model\":\"cnn\",\"total_steps\":" << steps << "}\n";
    for (int step = 1; step <= steps; ++step) {
        file << record(step, more);
    }
}

} // namespace

TEST_CASE("a large run is shown by a sample of all its steps until it has been read") {
    ScratchDir const scratch;
    constexpr int steps = 60000;
    write_records(scratch.path(), steps, std::string(600, 'a'));
    Run run(scratch.path());
    REQUIRE(run.read(part));
    CHECK(run.is_far_behind());
    auto const& sample = run.series();
    CHECK(sample.rows() > 2000);
    CHECK(sample.rows() < 10000);
    CHECK(sample.steps().front() == 1);
    CHECK(sample.steps().back() == steps);
    auto const* const loss = sample.column("loss");
    REQUIRE(loss != nullptr);
    std::int64_t widest = 0;
    for (std::size_t i = 0; i < sample.rows(); ++i) {
        REQUIRE(loss->values[i] == static_cast<float>(sample.steps()[i]) + 0.5F);
        widest = std::max(widest, i > 0 ? sample.steps()[i] - sample.steps()[i - 1] : 0);
    }
    CHECK(widest < 2 * steps / 512); // no part of the run is missing
    CHECK(run.newest_step().find("\"step\":60000") != std::string::npos);
    CHECK(run.events().size() == 1);
    auto const revision = run.revision();
    while (run.read(part)) {
        CHECK(run.revision() == revision);
    }
    CHECK(run.revision() > revision); // who has shown the sample asks again
    REQUIRE(run.series().rows() == steps);
    CHECK(run.series().steps()[777] == 778);
    CHECK(run.events().size() == 1);
    CHECK(run.bad_lines() == 0);

    std::ofstream(scratch.path() / "metrics.jsonl", std::ios::app) << record(steps + 1, "b");
    CHECK_FALSE(run.read(part));
    CHECK(run.series().rows() == steps + 1);
}

TEST_CASE("a run whose records are too long for a sample is shown as far as it has been read") {
    ScratchDir const scratch;
    write_records(scratch.path(), 2000, std::string(20000, 'a'));
    std::ofstream(scratch.path() / "metrics.jsonl", std::ios::app) << record(2001, "short");
    Run run(scratch.path());
    REQUIRE(run.read(part));
    CHECK(run.series().rows() > 100);
    CHECK(run.series().rows() < 400);
    while (run.read(part)) {
    }
    CHECK(run.series().rows() == 2001);
}

TEST_CASE("a sample ends with the reading, however the file ends") {
    ScratchDir const scratch;
    write_records(scratch.path(), 60000, std::string(600, 'a'));
    auto const zeros = std::string(GENERATE(1000, 3 << 20, 13 << 20), '\0');
    std::ofstream(scratch.path() / "metrics.jsonl", std::ios::app) << zeros;
    Run run(scratch.path());
    while (run.read(part)) {
        CHECK(run.read_share() < 1);
    }
    CHECK_FALSE(run.is_sampled());
    CHECK(run.series().rows() == 60000);
    CHECK(run.read_share() == 1);
}

TEST_CASE("a file that cannot be read for a moment keeps its sample") {
    ScratchDir const scratch;
    auto const file = scratch.path() / "metrics.jsonl";
    write_records(scratch.path(), 60000, std::string(600, 'a'));
    Run run(scratch.path());
    REQUIRE(run.read(part));
    auto const revision = run.revision();
    CHECK(revision > 0); // who follows it asks for the sample
    CHECK(run.overview().step == 60000);
    std::filesystem::rename(file, scratch.path() / "away");
    CHECK_FALSE(run.read(part));
    CHECK(run.is_sampled());
    CHECK(run.revision() == revision);
    std::filesystem::rename(scratch.path() / "away", file);
    while (run.read(part)) {
    }
    CHECK_FALSE(run.is_sampled());
    CHECK(run.series().rows() == 60000);
}

TEST_CASE("a sample is forgotten with its file") {
    ScratchDir const scratch;
    write_records(scratch.path(), 60000, std::string(600, 'a'));
    Run run(scratch.path());
    REQUIRE(run.read(part));
    auto const revision = run.revision();
    write_records(scratch.path(), 10, "b");
    CHECK_FALSE(run.read(part));
    CHECK(run.series().rows() == 10);
    CHECK(run.revision() > revision);
}

TEST_CASE("records that are not of steps take a limited amount of memory, however long they are") {
    ScratchDir const scratch;
    {
        std::ofstream file(scratch.path() / "metrics.jsonl");
        file << "{\"event\":\"start\",\"model\":\"cnn\"}\n";
        auto const fill = std::string(1 << 20, 'a');
        for (int i = 1; i <= 60; ++i) {
            file << R"({"event":"validation","step":)" << i << R"(,"note":")" << fill << "\"}\n";
        }
        for (int i = 1; i <= 3; ++i) {
            file << R"({"event":"note","number":)" << i << "}\n"
                 << std::string(9 << 20, 'x') << "\n";
        }
    }
    Run run(scratch.path());
    std::size_t max = 0;
    while (run.read(part)) {
        std::size_t bytes = 0;
        for (auto const& event : run.events()) {
            bytes += event.json.size();
        }
        max = std::max(max, bytes);
    }
    CHECK(max > 10 << 20);
    CHECK(max < 33 << 20);
    CHECK(run.revision() > 0); // who follows it asks again
    CHECK(run.bad_lines() == 3);
    REQUIRE(run.events().size() > 4);
    CHECK(run.events().front().kind == "start"); // those of steps go first
    CHECK(run.events().back().kind == "note");
    CHECK(run.events()[run.events().size() - 4].step == 60);
}
