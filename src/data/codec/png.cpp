#include <png.h>

#include "image.hpp"

namespace lockstep::data {

Image decode_png(std::span<std::byte const> bytes) {
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0) {
        throw DecodeFailure{png.message};
    }
    struct Freed {
        png_image* image;
        ~Freed() { png_image_free(image); }
    } const freed{&png};
    // A pixel takes a bit or more, and deflate makes at most 1032 bytes of one.
    auto const pixels = std::uint64_t{png.width} * png.height;
    if (pixels > most_pixels || pixels / 8 / 1032 > bytes.size()) {
        throw DecodeFailure{"its header says that it is larger than it can be"};
    }
    png.format = PNG_FORMAT_RGB;
    Image image{png.width, png.height, 3, {}};
    image.values.resize(PNG_IMAGE_SIZE(png));
    png_color const background{0, 0, 0};
    if (png_image_finish_read(&png, &background, image.values.data(), 0, nullptr) == 0 ||
        png.warning_or_error != 0) {
        throw DecodeFailure{png.message};
    }
    return image;
}

} // namespace lockstep::data
