#pragma once

#include "data/augment/picture.hpp"

namespace lockstep::data {

// As torchvision's transforms.v2.functional has them for float32.

/// Moves values away from a blurred picture, or to it for a factor below 1.
void adjust_sharpness(Picture const& picture, float factor, std::vector<float>& work);
/// Rounds values down to 2^bits levels.
void posterize(Picture const& picture, int bits);
/// Inverts the values from a threshold on.
void solarize(Picture const& picture, float threshold);
void invert(Picture const& picture);
/// Stretches each channel from 0 to 1.
void autocontrast(Picture const& picture);
/// Gives each channel an even histogram of 256 values.
void equalize(Picture const& picture);

} // namespace lockstep::data
