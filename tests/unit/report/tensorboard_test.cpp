#include "base/crc32c.hpp"
#include "base/file.hpp"
#include "report/tensorboard.hpp"

#include <bit>
#include <cstring>
#include <map>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

std::uint32_t sum_of(std::string const& text) {
    return crc32c(std::as_bytes(std::span(text)));
}

template <class Number>
Number number_at(std::string const& text, std::size_t at) {
    Number number{};
    std::memcpy(&number, text.data() + at, sizeof(number));
    return number;
}

/// The records of an event file; fails where a length or a sum is wrong.
std::vector<std::string> records_of(std::string const& text) {
    auto const masked = [](std::string const& bytes) {
        auto const sum = sum_of(bytes);
        return ((sum >> 15) | (sum << 17)) + 0xa282ead8U;
    };
    std::vector<std::string> records;
    for (std::size_t at = 0; at < text.size();) {
        REQUIRE(at + 12 <= text.size());
        auto const length = number_at<std::uint64_t>(text, at);
        CHECK(number_at<std::uint32_t>(text, at + 8) == masked(text.substr(at, 8)));
        REQUIRE(at + 16 + length <= text.size());
        records.push_back(text.substr(at + 12, length));
        CHECK(number_at<std::uint32_t>(text, at + 12 + length) == masked(records.back()));
        at += 16 + length;
    }
    return records;
}

std::vector<std::filesystem::path> files_in(std::filesystem::path const& directory) {
    std::vector<std::filesystem::path> files;
    for (auto const& entry : std::filesystem::directory_iterator(directory)) {
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

bool contains(std::string const& record, std::string const& text) {
    return record.find(text) != std::string::npos;
}

} // namespace

TEST_CASE("crc32c has the values of RFC 3720") {
    CHECK(sum_of("123456789") == 0xE3069283U);
    CHECK(sum_of(std::string(32, '\0')) == 0x8A9136AAU);
    CHECK(sum_of(std::string(32, '\xff')) == 0x62A8AB43U);
    CHECK(sum_of("") == 0);
}

#ifdef LOCKSTEP_HAS_PROTOBUF

// What is in the records is read by TensorBoard's own package in tests/run/monitor_test.py.
TEST_CASE("each attempt has an event file of its own, of whole records") {
    test::ScratchDir const scratch;
    config::Deck deck;
    deck.run.directory = scratch.path().string();
    for (int attempt = 0; attempt < 2; ++attempt) {
        auto const heartbeats = report::make_tensorboard(deck);
        heartbeats->on(train::Started{});
        heartbeats->on(train::Step{.step = 1, .loss = 2, .logged = false, .step_s = 1});
        heartbeats->on(train::Step{.step = 2, .loss = 2, .logged = true, .step_s = 1});
        heartbeats->on(train::Measured{
            .set = "validation", .step = 2, .metrics = {{"f1", 0.5}}, .best_metric = {}});
    }
    auto const files = files_in(scratch / "tensorboard");
    REQUIRE(files.size() == 2);
    for (auto const& file : files) {
        auto const records = records_of(read_text(file));
        REQUIRE(records.size() == 5);
        CHECK(contains(records[0], "brain.Event:2"));
        CHECK(contains(records[1], "_hparams_/session_start_info"));
        CHECK(contains(records[1], "optimizer.learning-rate"));
        CHECK_FALSE(contains(records[1], "monitor.log-every"));
        CHECK(contains(records[3], "loss/training"));
        CHECK(contains(records[4], "f1/validation"));
    }
}

TEST_CASE("classes share a section, whatever their names and their number") {
    auto const tags = [](std::map<std::string, double> const& metrics) {
        test::ScratchDir const scratch;
        config::Deck deck;
        deck.run.directory = scratch.path().string();
        report::make_tensorboard(deck)->on(
            train::Measured{.set = "test", .step = 1, .metrics = metrics, .best_metric = {}});
        return records_of(read_text(files_in(scratch / "tensorboard").at(0))).back();
    };
    auto const few = tags({{"f1", 0.5}, {"f1.shoe/boot", 0.25}, {"f1.100%", 0.75}});
    CHECK(contains(few, "f1/test"));
    CHECK(contains(few, "f1_by_class/shoe%2Fboot/test"));
    CHECK(contains(few, "f1_by_class/100%25/test"));
    CHECK_FALSE(contains(few, "f1.shoe"));
    std::map<std::string, double> all{{"f1", 0.5}};
    for (int i = 0; i < 1000; ++i) {
        all["f1.class " + std::to_string(i)] = i / 1000.0;
    }
    auto const many = tags(all);
    CHECK(many.size() < 1000);
    for (char const* name : {"f1/test", "f1_by_class/0_worst/test", "f1_by_class/2_median/test",
                             "f1_by_class/4_best/test"}) {
        CHECK(contains(many, name));
    }
}

TEST_CASE("a place that cannot be written is an error of the observer's making") {
    test::ScratchDir const scratch;
    File::create_new(scratch / "tensorboard");
    config::Deck deck;
    deck.run.directory = scratch.path().string();
    CHECK(test::error_of([&] { report::make_tensorboard(deck); }).code() ==
          ExitCode::cannot_create);
}

#else

TEST_CASE("without protobuf the program says so") {
    CHECK(test::error_of([] { report::make_tensorboard({}); }).code() == ExitCode::unavailable);
}

#endif
