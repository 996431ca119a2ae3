#pragma once

#include "data/augment/picture.hpp"

namespace lockstep::data {

// As torchvision's transforms.v2.functional has them for float32. Pictures of one channel have no
// colours that could be turned or taken away.

/// Values times `factor`.
void adjust_brightness(Picture const& picture, float factor);
/// Their distance from the mean of its gray times `factor`.
void adjust_contrast(Picture const& picture, float factor);
/// Their distance from gray times `factor`.
void adjust_saturation(Picture const& picture, float factor);
/// Turns the hue, which a whole turn of 1 leaves as it is.
void adjust_hue(Picture const& picture, float by);
void make_gray(Picture const& picture);

} // namespace lockstep::data
