#include "container.hpp"

#include "base/file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>

namespace lockstep::import {

namespace {

/// The first bytes of a file from a place on; zeros after its end.
class Head {
  public:
    Head(File const& file, std::uint64_t at) {
        auto const size = file.size();
        auto const there = at < size ? std::min<std::uint64_t>(size - at, bytes_.size()) : 0;
        file.read_at(at, std::span(bytes_).first(there));
    }
    std::uint64_t byte(std::size_t at) const { return std::to_integer<std::uint64_t>(bytes_[at]); }
    std::uint64_t big(std::size_t at, std::size_t count) const {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < count; ++i) {
            value = value << 8U | byte(at + i);
        }
        return value;
    }
    std::uint64_t little(std::size_t at) const {
        return byte(at) | byte(at + 1) << 8U | byte(at + 2) << 16U | byte(at + 3) << 24U;
    }
    std::string_view text(std::size_t at) const {
        return {reinterpret_cast<char const*>(bytes_.data()) + at, 4};
    }

  private:
    std::array<std::byte, 24> bytes_{};
};

/// An EBML element's whole extent (RFC 8794); none where its size is unknown or no such number.
std::optional<std::uint64_t> element_bytes(Head const& head) {
    auto const id =
        static_cast<std::size_t>(std::countl_zero(static_cast<std::uint8_t>(head.byte(0)))) + 1;
    if (id > 4) {
        return std::nullopt;
    }
    auto const length =
        static_cast<std::size_t>(std::countl_zero(static_cast<std::uint8_t>(head.byte(id)))) + 1;
    if (length > 8) {
        return std::nullopt;
    }
    auto const ones = (std::uint64_t{1} << (7 * length)) - 1;
    auto const size = head.big(id, length) & ones;
    return size == ones ? std::nullopt : std::optional(id + length + size);
}

/// A box of ISO/IEC 14496-12; none where it reaches to the file's end, or is none.
std::optional<std::uint64_t> box_bytes(Head const& head) {
    auto const type = head.text(4);
    auto const size = head.big(0, 4) == 1 ? head.big(8, 8) : head.big(0, 4);
    bool const named =
        std::all_of(type.begin(), type.end(), [](char c) { return c >= ' ' && c <= '~'; });
    return !named || size < 8 ? std::nullopt : std::optional(size);
}

/// A RIFF chunk; none where a writer left the size open.
std::optional<std::uint64_t> riff_bytes(Head const& head) {
    auto const size = head.little(4);
    return head.text(0) != "RIFF" || size == 0 || size == 0xffffffff ? std::nullopt
                                                                     : std::optional(8 + size);
}

/// Goes over what lies behind each other in a file, to the end or to what does not say its size.
template <class Extent>
std::uint64_t sum(File const& file, Extent const& extent_of) {
    auto const size = file.size();
    std::uint64_t at = 0;
    while (at < size) {
        auto const extent = extent_of(Head(file, at));
        if (!extent) {
            return 0;
        }
        if (*extent > size - at) {
            return at + std::min(*extent, ~std::uint64_t{0} - at);
        }
        at += *extent;
    }
    return at;
}

} // namespace

std::uint64_t container_bytes(std::filesystem::path const& path) {
    auto const file = File::open_read(path);
    Head const head(file, 0);
    if (head.big(0, 4) == 0x1a45dfa3) {
        return sum(file, element_bytes);
    }
    if (head.text(0) == "RIFF" && head.text(8) == "AVI ") {
        return sum(file, riff_bytes);
    }
    constexpr std::array<std::string_view, 5> first_boxes{"ftyp", "moov", "mdat", "wide", "free"};
    bool const boxes =
        std::find(first_boxes.begin(), first_boxes.end(), head.text(4)) != first_boxes.end();
    return boxes ? sum(file, box_bytes) : 0;
}

} // namespace lockstep::import
