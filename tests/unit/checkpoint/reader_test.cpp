#include "base/text.hpp"
#include "checkpoint/reader.hpp"
#include "checkpoint/writer.hpp"
#include "lockstep/base/error.hpp"

#include <array>
#include <bit>
#include <cstdio>
#include <limits>
#include <memory>

#include "catch.hpp"
#include "scratch_dir.hpp"
#include "state.hpp"

using namespace lockstep;

namespace {

std::filesystem::path written(test::ScratchDir const& scratch,
                              checkpoint::Snapshot const& snapshot) {
    auto const self = comm::Communicator::self();
    return checkpoint::write(self, snapshot, scratch / "c.h5", "1").path;
}

std::string output_of(std::string const& command) {
    std::unique_ptr<FILE, int (*)(FILE*)> const pipe(::popen(command.c_str(), "r"), ::pclose);
    std::string output;
    std::array<char, 4096> buffer{};
    for (auto got = buffer.size(); got > 0;) {
        got = std::fread(buffer.data(), 1, buffer.size(), pipe.get());
        output.append(buffer.data(), got);
    }
    return output;
}

/// What h5dump says of one dataset; asked from another directory than the file's.
std::string dump(std::filesystem::path const& path, std::string const& dataset) {
    return output_of(concat("cd / && h5dump -y -m %.9g -d ", dataset, " ", path.string(), " 2>&1"));
}

/// The numbers that h5dump printed.
std::vector<double> numbers_in(std::string const& dumped) {
    auto const begin = dumped.find("DATA {") + 6;
    std::vector<double> numbers;
    for (auto const& text : split(dumped.substr(begin, dumped.find('}', begin) - begin), ',')) {
        numbers.push_back(std::stod(text));
    }
    return numbers;
}

bool has_h5dump() {
    bool const there =
        output_of("h5dump --version 2>/dev/null").find("ersion") != std::string::npos;
    if (!there) {
        WARN("SKIPPED: h5dump is not installed");
    }
    return there;
}

bool contains(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("a checkpoint is read back bit by bit") {
    test::ScratchDir const scratch;
    test::State state;
    state.record.reals["nan"] = std::bit_cast<double>(0x7ff8'0000'dead'beefULL);
    state.record.reals["infinite"] = -std::numeric_limits<double>::infinity();
    state.record.integers["smallest"] = std::numeric_limits<std::int64_t>::min();
    for (int i = 0; i < 300; ++i) { // more than an object header holds
        state.record.reals["value" + std::to_string(i)] = i / 7.0;
    }
    state.record.history.append(1 << 20, 'h');
    auto const snapshot = state.snapshot();
    checkpoint::Reader const reader(written(scratch, snapshot));

    CHECK(test::read_whole<float>(reader, "state/parameters") == state.parameters);
    CHECK(test::read_whole<double>(reader, "state/moments") == state.moments);
    CHECK(test::read_whole<std::int64_t>(reader, "state/counters") == state.counters);
    CHECK(test::read_whole<float>(reader, "state/nothing").empty());
    std::array<float, 5> some{};
    reader.read("state/parameters", 1000, std::as_writable_bytes(std::span(some)));
    CHECK(some[4] == state.parameters[1004]);

    auto record = reader.record();
    CHECK(std::bit_cast<std::uint64_t>(record.reals.at("nan")) == 0x7ff8'0000'dead'beefULL);
    record.reals.erase("nan"); // never equal to itself
    state.record.reals.erase("nan");
    CHECK(record == state.record);

    REQUIRE(reader.arrays().size() == 4);
    CHECK(reader.arrays()[1].type == h5::Type::f64);
    REQUIRE(reader.views().size() == 3);
    CHECK(reader.views()[0].shape == h5::Shape{8, 5, 4});
    CHECK(reader.views()[1].first == 160);
}

TEST_CASE("an empty record and odd notes come back as they are") {
    test::ScratchDir const scratch;
    test::State state;
    state.record = {};
    state.record.notes = {{"a/b c", "line\n\"quoted\""}, {"", ""}};
    checkpoint::Reader const reader(written(scratch, state.snapshot()));
    CHECK(reader.record() == state.record);
}

TEST_CASE("what is not in the checkpoint cannot be read from it") {
    test::ScratchDir const scratch;
    checkpoint::Reader const reader(written(scratch, test::State().snapshot()));
    std::array<float, 2> two{};
    auto const into = std::as_writable_bytes(std::span(two));
    CHECK_THROWS_AS(reader.read("state/none", 0, into), Error);
    CHECK_THROWS_AS(reader.read("state/parameters", 1499, into), Error);
    CHECK_THROWS_AS(reader.read("state/parameters", 0, into.first(3)), Error);
    CHECK_NOTHROW(reader.read("state/parameters", 1498, into));
}

TEST_CASE("a file without a whole checksum header is refused") {
    test::ScratchDir const scratch;
    auto const path = written(scratch, test::State().snapshot());
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    CHECK_THROWS_AS(checkpoint::Reader(path), Error);
    { h5::File::create(scratch / "plain.h5").close(); }
    CHECK_THROWS_AS(checkpoint::Reader(scratch / "plain.h5"), Error);
}

TEST_CASE("h5dump reads parameters by name and shape from a renamed checkpoint") {
    test::ScratchDir const scratch;
    test::State const state;
    auto const moved = scratch / "moved.h5";
    std::filesystem::rename(written(scratch, state.snapshot()), moved);
    if (!has_h5dump()) {
        return;
    }
    auto const weight = dump(moved, "/model/conv1/weight");
    INFO(weight);
    CHECK(contains(weight, "( 8, 5, 4 )"));
    CHECK(numbers_in(weight) ==
          std::vector<double>(state.parameters.begin(), state.parameters.begin() + 160));
    auto const bias = dump(moved, "/model/conv1/bias");
    CHECK(numbers_in(bias) ==
          std::vector<double>(state.parameters.begin() + 160, state.parameters.begin() + 168));
    auto const batches = dump(moved, "/model/norm/batches");
    CHECK(contains(batches, "SCALAR"));
    CHECK(numbers_in(batches) == std::vector<double>{9});
}

TEST_CASE("h5dump reads the record") {
    test::ScratchDir const scratch;
    auto const path = written(scratch, test::State().snapshot());
    if (!has_h5dump()) {
        return;
    }
    CHECK(contains(dump(path, "/record/deck"), "name = small"));
    CHECK(contains(dump(path, "/record/history"), "epoch"));
    CHECK(contains(dump(path, "/record/notes"), "2026-01-31T12:00:00.123Z"));
    CHECK(contains(output_of("h5dump -a /record/step " + path.string()), "1200"));
    CHECK(contains(output_of("h5dump -a /format " + path.string()), "lockstep checkpoint"));
}
