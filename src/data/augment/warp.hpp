#pragma once

#include "data/augment/sample.hpp"

#include <array>
#include <cstdint>

namespace lockstep::data {

/// A part of a picture, in elements.
struct Crop {
    std::int64_t top = 0;
    std::int64_t left = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;
};

/// Scales a part of each picture of a sample to the sample's size: bilinear as torchvision's
/// resized_crop; classes of places as torch's interpolate(mode = nearest-exact).
void resize(AugmentedSample& sample, Crop const& crop);

/// Where in a picture an element of the new picture comes from, both counted from their middles:
/// x = m[0] x' + m[1] y' + m[2], y = m[3] x' + m[4] y' + m[5].
using Affine = std::array<double, 6>;

/// The inverse of a rotation by `degrees`, a shift, a scale and shears in degrees, about
/// (center_x, center_y), as torchvision's affine has it.
struct AffineParts {
    double degrees = 0;
    double shift_x = 0;
    double shift_y = 0;
    double scale = 1;
    double shear_x = 0;
    double shear_y = 0;
    double center_x = 0;
    double center_y = 0;
};
Affine inverse_affine(AffineParts const& parts);

/// Makes each picture of a sample of its values at other places: bilinear, and nearest for classes.
/// Beyond a picture lies what is blank.
void warp(AugmentedSample& sample, Affine const& affine);

} // namespace lockstep::data
