#include "data/augment/policy.hpp"

#include "data/augment/colour.hpp"
#include "data/augment/tone.hpp"
#include "data/augment/warp.hpp"

#include <cmath>
#include <numbers>

namespace lockstep::data {

namespace {

constexpr std::int64_t strongest = 30;

/// Shears about the corner, as torchvision's policies do.
void shear(AugmentedSample& sample, double amount, bool along_x) {
    auto const degrees = std::atan(amount) * 180 / std::numbers::pi;
    AffineParts parts{.center_x = -0.5 * static_cast<double>(sample.input().width()),
                      .center_y = -0.5 * static_cast<double>(sample.input().height())};
    (along_x ? parts.shear_x : parts.shear_y) = degrees;
    warp(sample, inverse_affine(parts));
}

void translate(AugmentedSample& sample, double by, bool along_x) {
    AffineParts parts;
    (along_x ? parts.shift_x : parts.shift_y) = std::trunc(by);
    warp(sample, inverse_affine(parts));
}

void change_tone(AugmentedSample& sample, std::size_t change, PolicyRange const& range,
                 double share, double sign) {
    auto const factor = static_cast<float>(1 + sign * share * range.colour);
    for_pictures(sample, [&](Picture const& picture) {
        switch (change) {
        case 6:
            return adjust_brightness(picture, factor);
        case 7:
            return adjust_saturation(picture, factor);
        case 8:
            return adjust_contrast(picture, factor);
        case 9:
            return adjust_sharpness(picture, factor, sample.buffers().work);
        case 10:
            return posterize(picture, static_cast<int>(std::nearbyint(8 - share * range.bits)));
        case 11:
            return solarize(picture, static_cast<float>(1 - share));
        case 12:
            return autocontrast(picture);
        default:
            return equalize(picture);
        }
    });
}

} // namespace

bool is_signed(std::size_t change) {
    return change >= 1 && change <= 9;
}

void apply_policy_change(AugmentedSample& sample, std::size_t change, PolicyRange const& range,
                         std::int64_t magnitude, double sign) {
    auto const share = static_cast<double>(magnitude) / strongest;
    auto const shift = [&](std::int64_t extent) {
        return sign * share * range.shift *
               (range.shift_is_share ? static_cast<double>(extent) : 1.0);
    };
    if (change == 0) {
        return;
    }
    if (change == 1 || change == 2) {
        shear(sample, sign * share * range.shear, change == 1);
    } else if (change == 3) {
        translate(sample, shift(sample.input().width()), true);
    } else if (change == 4) {
        translate(sample, shift(sample.input().height()), false);
    } else if (change == 5) {
        // torchvision's rotate() turns the other way round than its affine().
        warp(sample, inverse_affine({.degrees = -sign * share * range.degrees}));
    } else {
        change_tone(sample, change, range, share, sign);
    }
}

} // namespace lockstep::data
