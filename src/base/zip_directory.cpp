#include "base/zip_directory.hpp"

#include <cstring>

namespace lockstep {

namespace {

/// Little-endian, as all numbers in an archive.
template <class Number>
std::uint64_t number_at(std::string_view bytes, std::size_t at) {
    Number number{};
    std::memcpy(&number, bytes.data() + at, sizeof number);
    return number;
}

} // namespace

std::optional<ZipDirectory> zip_directory(std::string_view tail, std::uint64_t size) {
    constexpr std::size_t end_bytes = 22;       // and a comment
    constexpr std::size_t locator_bytes = 20;   // of the same in 64 bits
    constexpr std::size_t end_bytes_in_64 = 76; // its locator included
    auto const at = tail.rfind("PK\5\6");
    if (at == std::string_view::npos || tail.size() - at < end_bytes) {
        return std::nullopt;
    }
    bool const in_64 =
        at >= end_bytes_in_64 && tail.substr(at - locator_bytes).starts_with("PK\6\7");
    auto const end = size - tail.size() + at - (in_64 ? end_bytes_in_64 : 0);
    auto const bytes = in_64 ? number_at<std::uint64_t>(tail, at - end_bytes_in_64 + 40)
                             : number_at<std::uint32_t>(tail, at + 12);
    auto const begin = in_64 ? number_at<std::uint64_t>(tail, at - end_bytes_in_64 + 48)
                             : number_at<std::uint32_t>(tail, at + 16);
    if (bytes > end || begin != end - bytes) {
        return std::nullopt;
    }
    return ZipDirectory{begin, bytes};
}

} // namespace lockstep
