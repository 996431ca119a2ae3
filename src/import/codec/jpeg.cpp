#include <memory>
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
        throw DecodeFailure{tjGetErrorStr2(decoder.get())};
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
        throw DecodeFailure{tjGetErrorStr2(decoder.get())};
    }
    if (inks) {
        to_rgb(image);
    }
    return image;
}

} // namespace lockstep::import
