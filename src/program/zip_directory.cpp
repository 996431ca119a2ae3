#include "zip_directory.hpp"

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

/// Where the directory begins.
std::uint64_t begin_of_directory(std::string_view archive) {
    constexpr std::string_view end_mark = "PK\x05\x06";
    constexpr std::string_view end_mark_64 = "PK\x06\x06";
    constexpr std::uint64_t locator_size = 20;
    constexpr std::uint32_t is_in_64 = 0xffffffff;
    auto const end = archive.rfind(end_mark);
    if (end == std::string_view::npos) {
        damaged();
    }
    auto const begin = number_at<std::uint32_t>(archive, end + 16);
    if (begin != is_in_64 || end < locator_size) {
        return begin;
    }
    auto const end_64 = number_at<std::uint64_t>(archive, end - locator_size + 8);
    if (end_64 > archive.size() || !archive.substr(end_64).starts_with(end_mark_64)) {
        damaged();
    }
    return number_at<std::uint64_t>(archive, end_64 + 48);
}

} // namespace

std::map<std::string, std::uint32_t, std::less<>> checksums_of(std::string_view archive) {
    constexpr std::string_view entry_mark = "PK\x01\x02";
    constexpr std::uint64_t entry_size = 46;
    std::map<std::string, std::uint32_t, std::less<>> checksums;
    auto at = begin_of_directory(archive);
    while (at < archive.size() && archive.substr(at).starts_with(entry_mark)) {
        auto const checksum = number_at<std::uint32_t>(archive, at + 16);
        auto const name_size = number_at<std::uint16_t>(archive, at + 28);
        auto const extra_size = number_at<std::uint16_t>(archive, at + 30);
        auto const comment_size = number_at<std::uint16_t>(archive, at + 32);
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
