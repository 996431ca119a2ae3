#include "decode.hpp"

#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <cstring>
#include <optional>

#include "codec/inflate.hpp"

namespace lockstep::data {

namespace {

constexpr std::size_t sum_bytes = 4;

[[noreturn]] void refuse(std::string const& what) {
    throw Error(ExitCode::data, {what, "the file is damaged",
                                 "Copy the file again from its source, or create the file again"});
}

template <std::size_t Width>
void gather_bytes(std::byte const* planes, std::size_t count, std::byte* into) {
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t b = 0; b < Width; ++b) {
            into[i * Width + b] = planes[b * count + i];
        }
    }
}

/// Shuffled bytes are all first bytes of the elements, then all second ones, …; a rest that makes
/// no element stays at the end.
void unshuffle(std::span<std::byte const> planes, std::size_t width, std::span<std::byte> into) {
    auto const count = planes.size() / width;
    switch (width) {
    case 2:
        gather_bytes<2>(planes.data(), count, into.data());
        break;
    case 4:
        gather_bytes<4>(planes.data(), count, into.data());
        break;
    case 8:
        gather_bytes<8>(planes.data(), count, into.data());
        break;
    default:
        std::memcpy(into.data(), planes.data(), count * width); // of one byte: as they are
    }
    std::memcpy(into.data() + count * width, planes.data() + count * width,
                planes.size() - count * width);
}

std::span<std::byte const> without_checksum(std::span<std::byte const> bytes) {
    if (bytes.size() < sum_bytes) {
        refuse("it is shorter than its checksum");
    }
    auto const content = bytes.first(bytes.size() - sum_bytes);
    std::uint32_t stored = 0;
    std::memcpy(&stored, bytes.data() + content.size(), sum_bytes);
    if (fletcher32(content) != stored) {
        refuse("its checksum is wrong");
    }
    return content;
}

/// The bytes that go into each filter when the chunk is written; none after compression, whose
/// size is in no file.
std::vector<std::optional<std::size_t>> sizes_before(std::span<h5::Filter const> filters,
                                                     std::size_t bytes) {
    std::vector<std::optional<std::size_t>> sizes;
    std::optional<std::size_t> size = bytes;
    for (auto const filter : filters) {
        sizes.push_back(size);
        if (filter == h5::Filter::deflate) {
            size.reset();
        } else if (filter == h5::Filter::fletcher32 && size) {
            *size += sum_bytes;
        }
    }
    return sizes;
}

} // namespace

std::uint32_t fletcher32(std::span<std::byte const> bytes) {
    // The most words for which neither sum overflows.
    constexpr std::size_t max_words = 360;
    auto const folded = [](std::uint32_t sum) { return (sum & 0xffffU) + (sum >> 16U); };
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    std::size_t const words = bytes.size() / 2;
    for (std::size_t word = 0; word < words;) {
        for (auto const end = std::min(words, word + max_words); word < end; ++word) {
            low += (std::to_integer<std::uint32_t>(bytes[2 * word]) << 8U) |
                   std::to_integer<std::uint32_t>(bytes[2 * word + 1]);
            high += low;
        }
        low = folded(low);
        high = folded(high);
    }
    if (bytes.size() % 2 == 1) {
        low += std::to_integer<std::uint32_t>(bytes.back()) << 8U;
        high += low;
        low = folded(low);
        high = folded(high);
    }
    return (folded(high) << 16U) | folded(low);
}

void decode_chunk(std::span<h5::Filter const> filters, std::size_t element_bytes,
                  std::vector<std::byte>& stored, std::vector<std::byte>& spare,
                  std::span<std::byte> into) {
    auto const sizes = sizes_before(filters, into.size());
    std::span<std::byte const> bytes = stored;
    for (std::size_t i = filters.size(); i-- > 0;) {
        if (filters[i] == h5::Filter::fletcher32) {
            bytes = without_checksum(bytes);
            continue;
        }
        auto const size = filters[i] == h5::Filter::shuffle ? bytes.size() : sizes[i];
        if (!size) {
            refuse("it is compressed twice");
        }
        // The last step writes where the bytes are wanted.
        auto target = into;
        if (i > 0 || *size != into.size()) {
            spare.resize(*size);
            target = spare;
        }
        if (filters[i] == h5::Filter::deflate) {
            if (!inflate_into(bytes, target)) {
                refuse(concat("its compressed bytes do not expand to ", target.size(), " bytes"));
            }
        } else {
            unshuffle(bytes, element_bytes, target);
        }
        if (target.data() != into.data()) {
            stored.swap(spare);
        }
        bytes = target;
    }
    if (bytes.size() != into.size()) {
        refuse(concat("it has ", bytes.size(), " bytes instead of ", into.size()));
    }
    if (bytes.data() != into.data()) {
        std::memcpy(into.data(), bytes.data(), bytes.size());
    }
}

} // namespace lockstep::data
