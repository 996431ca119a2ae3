#include "record_checksums.hpp"

#include "base/zip_directory.hpp"

#include <zlib.h>

#include <cstring>

#include "schema.hpp"

namespace lockstep::program {

namespace {

[[noreturn]] void damaged() {
    damaged_program("the directory of its ZIP archive lies outside the file");
}

/// Little-endian numbers.
template <class Number>
Number number_at(std::string_view bytes, std::uint64_t at) {
    Number number{};
    if (at > bytes.size() || bytes.size() - at < sizeof number) {
        damaged();
    }
    std::memcpy(&number, bytes.data() + at, sizeof number);
    return number;
}

} // namespace

std::map<std::string, std::uint32_t, std::less<>> checksums_of(std::string_view archive) {
    constexpr std::string_view entry_mark = "PK\x01\x02";
    constexpr std::uint64_t entry_size = 46;
    std::map<std::string, std::uint32_t, std::less<>> checksums;
    auto const directory = zip_directory(archive, archive.size());
    if (!directory) {
        damaged();
    }
    auto at = directory->begin;
    while (at < archive.size() && archive.substr(at).starts_with(entry_mark)) {
        auto const checksum = number_at<std::uint32_t>(archive, at + 16);
        auto const name_size = number_at<std::uint16_t>(archive, at + 28);
        auto const extra_size = number_at<std::uint16_t>(archive, at + 30);
        auto const comment_size = number_at<std::uint16_t>(archive, at + 32);
        if (archive.size() - at < entry_size + name_size) {
            damaged();
        }
        auto const name = archive.substr(at + entry_size, name_size);
        checksums[std::string(name.substr(name.find('/') + 1))] = checksum;
        at += entry_size + name_size + extra_size + comment_size;
    }
    return checksums;
}

std::uint32_t checksum_of_record(std::string_view contents) {
    auto const* const begin = reinterpret_cast<Bytef const*>(contents.data());
    return static_cast<std::uint32_t>(::crc32_z(0, begin, contents.size()));
}

} // namespace lockstep::program
