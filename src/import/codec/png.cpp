#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <png.h>

#include "image.hpp"

namespace lockstep::import {

namespace {

/// Chunks that are kept to be told of, each with a zero byte, as libpng has them.
constexpr std::array<png_byte, 10> told_chunks{'a', 'c', 'T', 'L', 0, 'e', 'X', 'I', 'f', 0};

/// One picture on its way through libpng, whose errors and warnings come back by a jump: what is
/// jumped over has no destructors.
class PngReader {
  public:
    explicit PngReader(std::span<std::byte const> bytes) : left_(bytes) {
        attempt([this] {
            png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, fail);
            info_ = png_create_info_struct(png_);
            png_set_read_fn(png_, this, take);
        });
    }
    PngReader(PngReader const&) = delete;
    PngReader& operator=(PngReader const&) = delete;
    ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

    /// The picture without its values: those are of 8 bits a channel, RGB or RGBA.
    Image header() {
        attempt([this] {
            // Only what makes the pixels counts: no gamma, no profile, no text.
            png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
            png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_ALWAYS, told_chunks.data(),
                                        told_chunks.size() / 5);
            png_read_info(png_, info_);
            png_set_expand(png_);
            png_set_scale_16(png_);
            png_set_gray_to_rgb(png_);
            png_set_interlace_handling(png_);
        });
        Image image{png_get_image_width(png_, info_), png_get_image_height(png_, info_), 3, {}};
        if (png_get_bit_depth(png_, info_) == 16) {
            add_note(image, "its values of 16 bits were rounded to 8 bits");
        }
        return image;
    }

    void read_values(Image& image) {
        attempt([this] { png_read_update_info(png_, info_); });
        image.channels = png_get_channels(png_, info_);
        auto const row = image.width * image.channels;
        image.values.resize(image.height * row);
        std::vector<png_bytep> rows(image.height);
        for (std::size_t y = 0; y < rows.size(); ++y) {
            rows[y] = image.values.data() + y * row;
        }
        attempt([this, first = rows.data()] {
            png_read_image(png_, first);
            png_read_end(png_, info_);
        });
        png_unknown_chunkp unknown = nullptr;
        auto const count = png_get_unknown_chunks(png_, info_, &unknown);
        for (auto const& chunk : std::span(unknown, static_cast<std::size_t>(count))) {
            add_note(image,
                     chunk.name[0] == 'a'
                         ? "of its animation, only the first picture was taken"
                         : orientation_note(std::as_bytes(std::span(chunk.data, chunk.size))));
        }
    }

  private:
    template <class Work>
    void attempt(Work const& work) {
        if (setjmp(back_) != 0) { // NOLINT(cert-err52-cpp): as libpng has it
            throw DecodeFailure{why_.data()};
        }
        work();
    }

    [[noreturn]] static void fail(png_structp png, png_const_charp why) {
        auto& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
        static_cast<void>(std::snprintf(reader.why_.data(), reader.why_.size(), "%s", why));
        std::longjmp(reader.back_, 1); // NOLINT(cert-err52-cpp)
    }

    static void take(png_structp png, png_bytep into, std::size_t count) {
        auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
        if (reader.left_.size() < count) {
            png_error(png, "it was cut short");
        }
        std::memcpy(into, reader.left_.data(), count);
        reader.left_ = reader.left_.subspan(count);
    }

    std::span<std::byte const> left_;
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    std::jmp_buf back_{};
    std::array<char, 256> why_{};
};

} // namespace

Image decode_png(std::span<std::byte const> bytes) {
    PngReader reader(bytes);
    auto image = reader.header();
    // A pixel takes a bit or more, and deflate makes at most 1032 bytes of one: more are not there.
    auto const pixels = image.width * image.height;
    if (pixels / 8 / 1032 > bytes.size()) {
        throw DecodeFailure{"its header states a larger size than a PNG can have"};
    }
    if (pixels > max_pixels) {
        throw DecodeFailure{"it has more than the 2^26 pixels that are supported"};
    }
    reader.read_values(image);
    return image;
}

} // namespace lockstep::import
