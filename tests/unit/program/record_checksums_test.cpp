#include "program/record_checksums.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;

namespace {

template <class Number>
std::string bytes_of(Number number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

std::string half(std::size_t number) {
    return bytes_of(static_cast<std::uint16_t>(number));
}
std::string word(std::size_t number) {
    return bytes_of(static_cast<std::uint32_t>(number));
}

/// A record as the directory has it, and what its own header says instead.
struct Record {
    std::string name;
    std::string content;
    std::string own_name{};
    std::size_t own_size = 0;
    std::size_t flags = 0;
    std::size_t own_method = 0;
    bool inside = false; ///< of the content of the record before
};

std::string stored(Record const& record) {
    auto const& name = record.own_name.empty() ? record.name : record.own_name;
    bool const is_told = record.own_size == 0 && record.flags == 0;
    auto const size = word(is_told ? record.content.size() : record.own_size);
    return "PK\x03\x04" + half(20) + half(record.flags) + half(record.own_method) + word(0) +
           word(program::checksum_of_record(record.content)) + size + size + half(name.size()) +
           half(0) + name + record.content;
}

/// An archive of records that are stored as they are.
std::string archive_of(std::vector<Record> const& records) {
    std::string archive;
    std::string directory;
    for (auto const& record : records) {
        auto const begin = record.inside ? archive.size() - stored(record).size() : archive.size();
        archive += record.inside ? "" : stored(record);
        auto const size = word(record.content.size());
        directory += "PK\x01\x02" + half(20) + half(20) + half(record.flags) + half(0) + word(0) +
                     word(program::checksum_of_record(record.content)) + size + size +
                     half(record.name.size()) + half(0) + half(0) + half(0) + half(0) + word(0) +
                     word(begin) + record.name;
    }
    return archive + directory + "PK\x05\x06" + half(0) + half(0) + half(records.size()) +
           half(records.size()) + word(directory.size()) + word(archive.size()) + half(0);
}

void require_refused(std::vector<Record> const& records, std::string const& why) {
    auto const error = test::error_of([&] { program::checksums_of(archive_of(records)); });
    CAPTURE(error.what());
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, why));
}

} // namespace

TEST_CASE("the checksums of an archive are those of its records") {
    auto const found = program::checksums_of(
        archive_of({{"m/one", "first"}, {.name = "m/two", .content = "other", .flags = 8}}));
    REQUIRE(found.size() == 2);
    CHECK(found.at("one") == program::checksum_of_record("first"));
    CHECK(found.at("two") == program::checksum_of_record("other"));
}

TEST_CASE("an archive that readers could understand in two ways is refused") {
    require_refused({{"m/one", "first", "m/eno"}}, "the record m/one has another name");
    require_refused({{"m/one", "first", "", 4}}, "the record m/one has another size");
    require_refused({{.name = "m/one", .content = "first", .own_size = 4, .flags = 8}},
                    "the record m/one has another size");
    require_refused({{.name = "m/one", .content = "first", .own_method = 8}},
                    "the record m/one has another compression");
    require_refused({{"m/one", "first"}, {"m/one", "other"}}, "there are two records one");
    Record inner{.name = "m/two", .content = "other"};
    Record const outer{"m/one", stored(inner)};
    inner.inside = true;
    require_refused({outer, inner}, "records overlap");
}
