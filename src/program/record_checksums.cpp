#include "record_checksums.hpp"

#include "base/text.hpp"
#include "base/zip_directory.hpp"

#include <zlib.h>

#include <cstring>
#include <utility>

#include "schema.hpp"

namespace lockstep::program {

namespace {

[[noreturn]] void damaged(std::string const& why) {
    damaged_program(concat("in its ZIP archive, ", why));
}

/// Little-endian numbers.
template <class Number>
Number number_at(std::string_view bytes, std::uint64_t at) {
    Number number{};
    if (at > bytes.size() || bytes.size() - at < sizeof number) {
        damaged("the directory lies outside the file");
    }
    std::memcpy(&number, bytes.data() + at, sizeof number);
    return number;
}

std::string_view text_at(std::string_view bytes, std::uint64_t at, std::uint64_t size) {
    if (at > bytes.size() || bytes.size() - at < size) {
        damaged("the directory lies outside the file");
    }
    return bytes.substr(at, size);
}

constexpr std::uint32_t in_64_bits = 0xffffffff; ///< stands for a number in the extra field

/// What the directory says of a record.
struct Entry {
    std::string_view name;
    std::uint16_t method = 0;
    std::uint64_t packed = 0;
    std::uint64_t unpacked = 0;
    std::uint64_t begin = 0; ///< of its local header
};

Entry entry_at(std::string_view archive, std::uint64_t at) {
    constexpr std::uint64_t entry_bytes = 46;
    auto const name_bytes = number_at<std::uint16_t>(archive, at + 28);
    auto const extra_bytes = number_at<std::uint16_t>(archive, at + 30);
    Entry entry{
        text_at(archive, at + entry_bytes, name_bytes), number_at<std::uint16_t>(archive, at + 10),
        number_at<std::uint32_t>(archive, at + 20), number_at<std::uint32_t>(archive, at + 24),
        number_at<std::uint32_t>(archive, at + 42)};
    auto extra = text_at(archive, at + entry_bytes + name_bytes, extra_bytes);
    while (extra.size() >= 4) {
        auto const bytes = number_at<std::uint16_t>(extra, 2);
        auto field = text_at(extra, 4, bytes);
        if (number_at<std::uint16_t>(extra, 0) == 1) { // only what does not fit in 32 bits
            for (auto* const number : {&entry.unpacked, &entry.packed, &entry.begin}) {
                if (*number == in_64_bits) {
                    *number = number_at<std::uint64_t>(field, 0);
                    field.remove_prefix(sizeof *number);
                }
            }
        }
        extra.remove_prefix(std::size_t{4} + bytes);
    }
    return entry;
}

/// Readers differ in which of the two they believe: the header before a record, or the directory.
/// Returns  the end of the record
std::uint64_t require_local_header(std::string_view archive, Entry const& entry) {
    constexpr std::uint64_t header_bytes = 30;
    auto const at = entry.begin;
    auto const differs = [&](char const* what) {
        damaged(
            concat("the record ", entry.name, " has another ", what, " than the directory says"));
    };
    if (text_at(archive, at, header_bytes).substr(0, 4) != "PK\x03\x04") {
        differs("place");
    }
    auto const name_bytes = number_at<std::uint16_t>(archive, at + 26);
    if (text_at(archive, at + header_bytes, name_bytes) != entry.name) {
        differs("name");
    }
    if (number_at<std::uint16_t>(archive, at + 8) != entry.method) {
        differs("compression");
    }
    bool const follows = (number_at<std::uint16_t>(archive, at + 6) & 8U) != 0; // after the record
    for (auto const& [place, bytes] : {std::pair(18, entry.packed), {22, entry.unpacked}}) {
        auto const said = number_at<std::uint32_t>(archive, at + static_cast<unsigned>(place));
        if (said != bytes && said != in_64_bits && !(follows && said == 0)) {
            differs("size");
        }
    }
    auto const begin = at + header_bytes + name_bytes + number_at<std::uint16_t>(archive, at + 28);
    text_at(archive, begin, entry.packed);
    return begin + entry.packed;
}

} // namespace

std::map<std::string, std::uint32_t, std::less<>> checksums_of(std::string_view archive) {
    constexpr std::string_view entry_mark = "PK\x01\x02";
    constexpr std::uint64_t entry_size = 46;
    std::map<std::string, std::uint32_t, std::less<>> checksums;
    std::map<std::uint64_t, std::uint64_t> ends; // of records, by where they begin
    auto const directory = zip_directory(archive, archive.size());
    if (!directory) {
        damaged("the directory lies outside the file");
    }
    auto at = directory->begin;
    while (at < archive.size() && archive.substr(at).starts_with(entry_mark)) {
        auto const entry = entry_at(archive, at);
        auto const name = std::string(entry.name.substr(entry.name.find('/') + 1));
        auto const is_new =
            checksums.emplace(name, number_at<std::uint32_t>(archive, at + 16)).second;
        if (!is_new) {
            damaged(concat("there are two records ", name));
        }
        if (!ends.emplace(entry.begin, require_local_header(archive, entry)).second) {
            damaged(concat("the record ", name, " overlaps another one"));
        }
        at += entry_size + entry.name.size() + number_at<std::uint16_t>(archive, at + 30) +
              number_at<std::uint16_t>(archive, at + 32);
    }
    std::uint64_t end = 0;
    for (auto const& [begin, its_end] : ends) {
        if (begin < end) {
            damaged("records overlap");
        }
        end = its_end;
    }
    if (end > directory->begin) {
        damaged("a record overlaps the directory");
    }
    return checksums;
}

std::uint32_t checksum_of_record(std::string_view contents) {
    auto const* const begin = reinterpret_cast<Bytef const*>(contents.data());
    return static_cast<std::uint32_t>(::crc32_z(0, begin, contents.size()));
}

} // namespace lockstep::program
