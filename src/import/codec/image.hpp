#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../alpha.hpp"

namespace lockstep::import {

/// A picture of 8 bits a channel, [height, width, channels].
struct Image {
    std::uint64_t width = 0;
    std::uint64_t height = 0;
    std::uint64_t channels = 3;
    std::vector<std::uint8_t> values;
    std::string note{}; ///< what of the file is not in the values, such as "its values of 16 bits
                        ///< were rounded to 8 bits"; clauses joined by ", "
};

constexpr std::uint64_t max_pixels = std::uint64_t{1} << 26;

/// A decoder's error about its input; the caller adds the file.
struct DecodeFailure {
    std::string why;
};

/// Decodes to RGB, or to RGBA where pixels may be transparent. Values are those that are stored,
/// regardless of gamma, profile or orientation (noted); 16-bit values are divided by 257 and
/// rounded. Four inks become (255 - ink) (255 - black) / 255, rounded.
///
/// Throws  DecodeFailure; Error 69 where this build has no such decoder
Image decode_png(std::span<std::byte const> bytes);
Image decode_jpeg(std::span<std::byte const> bytes);

/// The note on a picture that is to be shown turned or mirrored, by the orientation of its EXIF
/// record (a TIFF file of its own: TIFF 6.0, section 2; tag 274); "" for an upright picture, one
/// that states none, and a damaged record.
std::string orientation_note(std::span<std::byte const> exif);

/// Adds a clause to an image's note, unless the clause is empty.
void add_note(Image& image, std::string_view clause);

/// A PNG or JPEG file, told apart by how it begins, of 3 channels, or 4 with Alpha::keep.
///
/// Throws  Error 66 or 65, with the file's name
Image read_image(std::filesystem::path const& path, Alpha alpha);

/// Luma of ITU-R BT.601: (299 R + 587 G + 114 B) / 1000, rounded; a fourth channel stays.
Image to_gray(Image const& image);

/// Brings a picture to a size, whatever its proportions: a triangle filter, first along x, then
/// along y, as wide as a pixel of the result where that is the larger one, so that every pixel
/// counts (bilinear interpolation where it is enlarged).
Image resized(Image const& image, std::uint64_t width, std::uint64_t height);

/// Scales a picture in its proportions and cuts a size out of its middle, as torchvision's Resize
/// and CenterCrop do: the shorter side becomes `shorter`, or, where that is 0, both sides as short
/// as the size allows.
///
/// Throws  Error 65 with `path` for a picture so narrow that it would become larger than max_pixels
Image covering(Image const& image, std::uint64_t width, std::uint64_t height, std::uint64_t shorter,
               std::filesystem::path const& path);

/// [channels, height, width].
std::vector<std::byte> channels_first(Image const& image);

} // namespace lockstep::import
