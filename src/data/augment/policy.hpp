#pragma once

#include "data/augment/sample.hpp"

#include <array>
#include <string_view>

namespace lockstep::data {

/// How strong the changes of a policy can be: RandAugment's (Cubuk et al., arXiv 1909.13719), or
/// TrivialAugment's (Müller and Hutter, arXiv 2103.10158), as torchvision has them.
struct PolicyRange {
    double shear;
    double shift; ///< elements, or a share of the extent
    bool shift_is_share;
    double degrees;
    double colour;
    double bits; ///< that are lost
};

inline constexpr PolicyRange rand_augment{0.3, 150.0 / 331.0, true, 30, 0.9, 4};
inline constexpr PolicyRange trivial_augment{0.99, 32, false, 135, 0.99, 6};

inline constexpr std::array<std::string_view, 14> policy_changes{
    "Identity", "ShearX",   "ShearY",    "TranslateX", "TranslateY", "Rotate",       "Brightness",
    "Color",    "Contrast", "Sharpness", "Posterize",  "Solarize",   "AutoContrast", "Equalize"};

/// Whether the sign of a change is random.
bool is_signed(std::size_t change);

/// Makes one of the changes, as strong as `magnitude` of 0 to 30; `sign`: 1 or −1.
void apply_policy_change(AugmentedSample& sample, std::size_t change, PolicyRange const& range,
                         std::int64_t magnitude, double sign);

} // namespace lockstep::data
