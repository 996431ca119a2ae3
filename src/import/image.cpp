#include "codec/image.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "source_file.hpp"

namespace lockstep::import {

namespace {

/// Which pixels make one pixel of the result, and how much each counts; the weights sum to 1.
struct Tap {
    std::uint64_t first = 0;
    std::vector<float> weights;
};

std::vector<Tap> taps(std::uint64_t from, std::uint64_t to) {
    double const scale = static_cast<double>(from) / static_cast<double>(to);
    double const reach = std::max(scale, 1.0);
    std::vector<Tap> all(to);
    for (std::uint64_t i = 0; i < to; ++i) {
        double const center = (static_cast<double>(i) + 0.5) * scale;
        auto const first = static_cast<std::uint64_t>(std::max(center - reach, 0.0));
        auto const last =
            std::min(from, static_cast<std::uint64_t>(std::max(std::ceil(center + reach), 1.0)));
        std::vector<double> weights;
        double sum = 0;
        for (auto x = first; x < last; ++x) {
            double const distance = std::abs(static_cast<double>(x) + 0.5 - center) / reach;
            sum += weights.emplace_back(std::max(1 - distance, 0.0));
        }
        all[i].first = first;
        for (auto const weight : weights) {
            all[i].weights.push_back(static_cast<float>(weight / sum));
        }
    }
    return all;
}

/// Filters `lines` lines of pixels that lie `step` values apart; lines lie `pitch` apart.
struct Axis {
    std::uint64_t lines;
    std::uint64_t step;
    std::uint64_t pitch_in;
    std::uint64_t pitch_out;
};

template <class Value>
void filter(std::vector<Value> const& in, std::vector<float>& out, std::vector<Tap> const& taps,
            Axis const& axis) {
    for (std::uint64_t line = 0; line < axis.lines; ++line) {
        for (std::uint64_t i = 0; i < taps.size(); ++i) {
            for (std::uint64_t c = 0; c < axis.step; ++c) {
                float sum = 0;
                auto at = line * axis.pitch_in + taps[i].first * axis.step + c;
                for (auto const weight : taps[i].weights) {
                    sum += weight * static_cast<float>(in[at]);
                    at += axis.step;
                }
                out[line * axis.pitch_out + i * axis.step + c] = sum;
            }
        }
    }
}

/// An RGB or RGBA picture with as many channels as `alpha` asks for.
Image with_alpha(Image image, Alpha alpha) {
    auto const wanted = alpha == Alpha::keep ? 4U : 3U;
    if (image.channels == wanted) {
        return image;
    }
    Image changed{image.width, image.height, wanted, {}, std::move(image.note)};
    changed.values.reserve(image.width * image.height * wanted);
    bool clear = false;
    for (std::size_t at = 0; at < image.values.size(); at += image.channels) {
        int const opaque = image.channels == 4 ? image.values[at + 3] : 255;
        clear = clear || opaque < 255;
        for (std::size_t c = 0; c < 3; ++c) {
            int const value = image.values[at + c];
            changed.values.push_back(static_cast<std::uint8_t>(
                alpha == Alpha::blend ? (value * opaque + 127) / 255 : value));
        }
        if (wanted == 4) {
            changed.values.push_back(static_cast<std::uint8_t>(opaque));
        }
    }
    if (clear && alpha == Alpha::drop) {
        add_note(changed, "its transparency was dropped");
    }
    return changed;
}

/// What files of other kinds begin with, so that they can be named.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> other_kinds{
    {{"GIF8", "GIF"},
     {"BM", "BMP"},
     {"RIFF", "WebP"},
     {std::string_view("II*\0", 4), "TIFF"},
     {std::string_view("MM\0*", 4), "TIFF"},
     {std::string_view("\0\0\0\x0cjP", 6), "JPEG 2000"},
     {"<svg", "SVG"},
     {"%PDF", "PDF"}}};

constexpr std::string_view png_start = "\x89PNG\r\n";
constexpr std::string_view jpeg_start = "\xff\xd8\xff";

[[noreturn]] void refuse_kind(std::string_view bytes) {
    if (bytes.size() > 1 && (png_start.starts_with(bytes) || jpeg_start.starts_with(bytes))) {
        throw DecodeFailure{"it was cut short"};
    }
    for (auto const& [start, kind] : other_kinds) {
        if (bytes.starts_with(start)) {
            throw DecodeFailure{
                concat("it is a ", kind, " file, but only PNG and JPEG are supported")};
        }
    }
    throw DecodeFailure{bytes.empty() ? "it is empty" : "it is neither a PNG nor a JPEG file"};
}

/// Unsigned values of a TIFF file, in its byte order.
class TiffReader {
  public:
    explicit TiffReader(std::span<std::byte const> bytes)
        : bytes_(bytes), big_(!bytes.empty() && bytes.front() == std::byte{'M'}) {}

    /// 0 past the end.
    std::uint32_t take(std::uint64_t at, unsigned size) const {
        if (at + size > bytes_.size()) {
            return 0;
        }
        std::uint32_t value = 0;
        for (unsigned i = 0; i < size; ++i) {
            auto const byte = std::to_integer<std::uint32_t>(bytes_[at + i]);
            value |= byte << 8 * (big_ ? size - 1 - i : i);
        }
        return value;
    }

  private:
    std::span<std::byte const> bytes_;
    bool big_;
};

} // namespace

void add_note(Image& image, std::string_view clause) {
    image.note += concat(image.note.empty() || clause.empty() ? "" : ", ", clause);
}

std::string orientation_note(std::span<std::byte const> exif) {
    constexpr unsigned orientation = 274;
    constexpr std::uint64_t entry_bytes = 12;
    TiffReader const tiff(exif);
    std::uint64_t const directory = tiff.take(4, 4);
    for (std::uint64_t i = 0; i < tiff.take(directory, 2); ++i) {
        auto const entry = directory + 2 + i * entry_bytes;
        auto const value = tiff.take(entry + 8, 2);
        if (tiff.take(entry, 2) == orientation && value > 1 && value <= 8) {
            return concat("its EXIF orientation (", value, ") was not applied");
        }
    }
    return {};
}

Image read_image(std::filesystem::path const& path, Alpha alpha) {
    require_file(path);
    auto const file = File::open_read(path);
    std::vector<std::byte> bytes(file.size());
    file.read_at(0, bytes);
    std::string_view const text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
    try {
        if (text.starts_with(png_start)) {
            return with_alpha(decode_png(bytes), alpha);
        }
        if (text.starts_with(jpeg_start)) {
            return with_alpha(decode_jpeg(bytes), alpha);
        }
        refuse_kind(text);
    } catch (DecodeFailure const& failure) {
        throw Error(ExitCode::data, {path.string(), failure.why,
                                     "Replace the file, or skip unreadable files with --skip-bad"});
    }
}

Image to_gray(Image const& image) {
    Image gray{image.width, image.height, image.channels - 2, {}};
    gray.values.reserve(image.width * image.height * gray.channels);
    for (std::size_t i = 0; i < image.values.size(); i += image.channels) {
        auto const luma =
            299 * image.values[i] + 587 * image.values[i + 1] + 114 * image.values[i + 2];
        gray.values.push_back(static_cast<std::uint8_t>((luma + 500) / 1000));
        if (image.channels == 4) {
            gray.values.push_back(image.values[i + 3]);
        }
    }
    return gray;
}

Image resized(Image const& image, std::uint64_t width, std::uint64_t height) {
    if (image.width == width && image.height == height) {
        return image;
    }
    auto const channels = image.channels;
    std::vector<float> narrow(image.height * width * channels);
    filter(image.values, narrow, taps(image.width, width),
           {image.height, channels, image.width * channels, width * channels});
    // Along y, the row of the result is one pixel of width * channels values.
    std::vector<float> result(height * width * channels);
    filter(narrow, result, taps(image.height, height), {1, width * channels, 0, 0});
    Image small{width, height, channels, {}};
    small.values.reserve(result.size());
    for (auto const value : result) {
        small.values.push_back(
            static_cast<std::uint8_t>(std::clamp(std::floor(value + 0.5F), 0.0F, 255.0F)));
    }
    return small;
}

namespace {

/// What becomes of a side of a picture whose other side, `of`, becomes `to`.
std::uint64_t in_proportion(std::uint64_t side, std::uint64_t to, std::uint64_t of) {
    return std::max<std::uint64_t>(side * to / of, 1);
}

Image cut(Image const& image, std::uint64_t width, std::uint64_t height) {
    auto const half = [](std::uint64_t rest) {
        return static_cast<std::uint64_t>(std::nearbyint(static_cast<double>(rest) / 2));
    };
    auto const top = half(image.height - height);
    auto const left = half(image.width - width);
    Image middle{width, height, image.channels, {}, image.note};
    middle.values.reserve(width * height * image.channels);
    for (auto y = top; y < top + height; ++y) {
        auto const first = image.values.begin() +
                           static_cast<std::ptrdiff_t>((y * image.width + left) * image.channels);
        middle.values.insert(middle.values.end(), first,
                             first + static_cast<std::ptrdiff_t>(width * image.channels));
    }
    return middle;
}

} // namespace

Image covering(Image const& image, std::uint64_t width, std::uint64_t height, std::uint64_t shorter,
               std::filesystem::path const& path) {
    bool const is_wide = image.width >= image.height;
    auto scaled_width = is_wide ? in_proportion(image.width, shorter, image.height) : shorter;
    auto scaled_height = is_wide ? shorter : in_proportion(image.height, shorter, image.width);
    if (shorter == 0) {
        bool const by_height = image.width * height >= image.height * width;
        scaled_width = by_height ? in_proportion(image.width, height, image.height) : width;
        scaled_height = by_height ? height : in_proportion(image.height, width, image.width);
    }
    if (scaled_width * scaled_height > max_pixels) {
        throw Error(ExitCode::data,
                    {path.string(),
                     concat("it has ", image.width, "x", image.height,
                            " pixels: in these proportions, it would become too large"),
                     "Leave out --center-crop, or skip this file with --skip-bad"});
    }
    return cut(resized(image, scaled_width, scaled_height), width, height);
}

std::vector<std::byte> channels_first(Image const& image) {
    std::vector<std::byte> planes(image.values.size());
    auto const pixels = image.width * image.height;
    for (std::uint64_t i = 0; i < pixels; ++i) {
        for (std::uint64_t c = 0; c < image.channels; ++c) {
            planes[c * pixels + i] = std::byte{image.values[i * image.channels + c]};
        }
    }
    return planes;
}

} // namespace lockstep::import
