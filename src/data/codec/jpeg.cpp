#include <memory>
#include <turbojpeg.h>

#include "image.hpp"

namespace lockstep::data {

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
    Image image{static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height), 3, {}};
    if (image.width * image.height > most_pixels) {
        throw DecodeFailure{"it has more pixels than are taken, 2^26"};
    }
    image.values.resize(image.width * image.height * 3);
    // Exact transforms, the same on every processor; a warning tells of damaged data.
    if (tjDecompress2(decoder.get(), first, bytes.size(), image.values.data(), width, 0, height,
                      TJPF_RGB,
                      TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0) {
        throw DecodeFailure{tjGetErrorStr2(decoder.get())};
    }
    return image;
}

} // namespace lockstep::data
