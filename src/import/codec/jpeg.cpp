#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <turbojpeg.h>

#include "image.hpp"

namespace lockstep::import {

namespace {

/// Inks, stored as their complements as every writer of such files does, to what light is left.
void to_rgb(Image& image) {
    auto const pixels = image.width * image.height;
    for (std::uint64_t i = 0; i < pixels; ++i) {
        auto const black = image.values[4 * i + 3];
        for (std::uint64_t c = 0; c < 3; ++c) {
            image.values[3 * i + c] =
                static_cast<std::uint8_t>((image.values[4 * i + c] * black + 127) / 255);
        }
    }
    image.channels = 3;
    image.values.resize(pixels * 3);
}

constexpr std::size_t exif_marker = 0xe1;
constexpr std::string_view exif_start("Exif\0\0", 6);
constexpr std::size_t pictures_marker = 0xe2; ///< of CIPA DC-007, several pictures in a file
constexpr std::string_view pictures_start("MPF\0", 4);

constexpr std::size_t scan_marker = 0xda;

/// Shows each whole segment before the first scan, its marker and content. A segment is a marker
/// and its length, which counts itself (ITU-T T.81, B.1.1.4). Returns where the next one begins.
template <class Visit>
std::size_t walk_segments(std::span<std::byte const> bytes, Visit const& visit) {
    auto const number = [&](std::size_t at) { return std::to_integer<std::size_t>(bytes[at]); };
    std::size_t at = 2;
    while (at + 4 <= bytes.size() && number(at) == 0xff) {
        auto const marker = number(at + 1);
        if (marker == 0xff) {
            ++at; // a marker may begin with any number of these
            continue;
        }
        auto const length = 256 * number(at + 2) + number(at + 3);
        if (marker == scan_marker || length < 2 || at + 2 + length > bytes.size()) {
            break;
        }
        visit(marker, bytes.subspan(at + 4, length - 2));
        at += 2 + length;
    }
    return at;
}

std::string_view text_of(std::span<std::byte const> bytes) {
    return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

/// What follows `start` in the first such segment before the first scan; nothing: there is none.
std::optional<std::span<std::byte const>> segment_of(std::span<std::byte const> bytes,
                                                     std::size_t wanted, std::string_view start) {
    std::optional<std::span<std::byte const>> found;
    walk_segments(bytes, [&](std::size_t marker, std::span<std::byte const> content) {
        if (!found && marker == wanted && text_of(content).starts_with(start)) {
            found = content.subspan(start.size());
        }
    });
    return found;
}

/// Whether a file ends within a segment, or in a scan without the marker that ends a picture.
bool is_cut(std::span<std::byte const> bytes) {
    auto const end = walk_segments(bytes, [](auto, auto) {});
    auto const rest = text_of(bytes.subspan(std::min(end, bytes.size())));
    if (rest.size() < 4) {
        return true;
    }
    bool const in_scan = rest[1] == static_cast<char>(scan_marker);
    bool const has_length = rest[2] != 0 || static_cast<unsigned char>(rest[3]) >= 2;
    return rest[0] == '\xff' && (in_scan ? rest.find("\xff\xd9") == rest.npos : has_length);
}

DecodeFailure failure_of(tjhandle decoder, std::span<std::byte const> bytes) {
    return {is_cut(bytes) ? "it was cut short" : tjGetErrorStr2(decoder)};
}

} // namespace

Image decode_jpeg(std::span<std::byte const> bytes) {
    struct Destroy {
        void operator()(void* handle) const { tjDestroy(handle); }
    };
    std::unique_ptr<void, Destroy> const decoder(tjInitDecompress());
    auto const* first = reinterpret_cast<unsigned char const*>(bytes.data());
    int width = 0;
    int height = 0;
    int subsampling = 0;
    int colours = 0;
    if (tjDecompressHeader3(decoder.get(), first, bytes.size(), &width, &height, &subsampling,
                            &colours) != 0) {
        throw failure_of(decoder.get(), bytes);
    }
    bool const inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
    Image image{
        static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height), inks ? 4U : 3U, {}};
    if (image.width * image.height > max_pixels) {
        throw DecodeFailure{"it has more than the 2^26 pixels that are supported"};
    }
    image.values.resize(image.width * image.height * image.channels);
    // Exact transforms, the same on every processor; a warning tells of damaged data.
    if (tjDecompress2(decoder.get(), first, bytes.size(), image.values.data(), width, 0, height,
                      inks ? TJPF_CMYK : TJPF_RGB,
                      TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0) {
        throw failure_of(decoder.get(), bytes);
    }
    if (inks) {
        to_rgb(image);
    }
    if (auto const exif = segment_of(bytes, exif_marker, exif_start)) {
        add_note(image, orientation_note(*exif));
    }
    if (segment_of(bytes, pictures_marker, pictures_start)) {
        add_note(image, "of its pictures, only the first was taken");
    }
    return image;
}

} // namespace lockstep::import
