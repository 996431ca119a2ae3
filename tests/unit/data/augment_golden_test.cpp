#include "data/augment/blur.hpp"
#include "data/augment/colour.hpp"
#include "data/augment/gamma.hpp"
#include "data/augment/policy.hpp"
#include "data/augment/tone.hpp"
#include "data/augment/warp.hpp"

#include <map>
#include <sstream>

#include "catch.hpp"
#include "golden_lines.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

/// A line of augmentations.txt: a change, the extents of a picture, parameters, and the result.
struct GoldenChange {
    std::string name;
    std::vector<std::int64_t> extents;
    std::vector<double> parameters;
    std::vector<float> expected;

    explicit GoldenChange(std::string const& line) {
        std::istringstream words(line);
        words >> name;
        for (std::string word; words >> word && word != "=";) {
            if (extents.size() < 3) {
                extents.push_back(std::stoll(word));
            } else {
                parameters.push_back(std::stod(word));
            }
        }
        for (float value = 0; words >> value;) {
            expected.push_back(value);
        }
    }
};

/// As make_augmentations.py makes it.
std::vector<float> picture(std::vector<std::int64_t> const& extents) {
    std::vector<float> values;
    std::int64_t state = 12345;
    for (std::int64_t i = 0; i < extents[0] * extents[1] * extents[2]; ++i) {
        state = (state * 1103515245 + 12345) % (std::int64_t{1} << 31);
        values.push_back(static_cast<float>(state / 65536 % 256) / 255);
    }
    auto const plane = static_cast<std::size_t>(extents[1] * extents[2]);
    for (std::size_t x = 0; extents[0] == 3 && x < 2; ++x) {
        values[plane + x] = values[2 * plane + x] = values[x];
    }
    return values;
}

AffineParts affine_parts(std::vector<double> const& p) {
    return {.degrees = p[0],
            .shift_x = p[1],
            .shift_y = p[2],
            .scale = p[3],
            .shear_x = p[4],
            .shear_y = p[5]};
}

Crop crop_of(std::vector<double> const& p) {
    auto const whole = [&](std::size_t at) { return static_cast<std::int64_t>(p[at]); };
    return {whole(0), whole(1), whole(2), whole(3)};
}

using Make = void (*)(AugmentedSample& sample, std::vector<double> const& parameters);

template <auto function, class... Given>
void by_picture(AugmentedSample& sample, Given... given) {
    for_pictures(sample, [&](Picture const& each) { function(each, given...); });
}

std::map<std::string, Make> const kernels{
    {"brightness", [](auto& s, auto& p) { by_picture<adjust_brightness>(s, float(p[0])); }},
    {"contrast", [](auto& s, auto& p) { by_picture<adjust_contrast>(s, float(p[0])); }},
    {"saturation", [](auto& s, auto& p) { by_picture<adjust_saturation>(s, float(p[0])); }},
    {"hue", [](auto& s, auto& p) { by_picture<adjust_hue>(s, float(p[0])); }},
    {"gray", [](auto& s, auto&) { for_pictures(s, [](Picture const& each) { make_gray(each); }); }},
    {"gamma", [](auto& s, auto& p) { adjust_gamma(s, p[0]); }},
    {"sharpness",
     [](auto& s, auto& p) {
         for_pictures(s, [&](Picture const& each) {
             adjust_sharpness(each, float(p[0]), s.buffers().work);
         });
     }},
    {"posterize", [](auto& s, auto& p) { by_picture<posterize>(s, int(p[0])); }},
    {"solarize", [](auto& s, auto& p) { by_picture<solarize>(s, float(p[0])); }},
    {"invert", [](auto& s, auto&) { by_picture<invert>(s); }},
    {"autocontrast", [](auto& s, auto&) { by_picture<autocontrast>(s); }},
    {"equalize", [](auto& s, auto&) { by_picture<equalize>(s); }},
    {"blur", [](auto& s, auto& p) { gaussian_blur(s, std::int64_t(p[0]), p[1]); }},
    {"affine", [](auto& s, auto& p) { warp(s, inverse_affine(affine_parts(p))); }},
    {"resized-crop", [](auto& s, auto& p) { resize(s, crop_of(p)); }},
    {"affine-mask", [](auto& s, auto& p) { warp(s, inverse_affine(affine_parts(p))); }},
    {"resized-mask", [](auto& s, auto& p) { resize(s, crop_of(p)); }},
    {"randaugment",
     [](auto& s, auto& p) {
         apply_policy_change(s, std::size_t(p[0]), rand_augment, std::int64_t(p[1]), p[2]);
     }},
    {"trivialaugment",
     [](auto& s, auto& p) {
         apply_policy_change(s, std::size_t(p[0]), trivial_augment, std::int64_t(p[1]), p[2]);
     }},
};

/// The values of [channels, height, width] in another order.
std::vector<float> laid_out(std::vector<float> const& values,
                            std::vector<std::int64_t> const& extents, bool channels_last) {
    if (!channels_last) {
        return values;
    }
    std::vector<float> moved;
    auto const plane = extents[1] * extents[2];
    for (std::int64_t place = 0; place < plane; ++place) {
        for (std::int64_t channel = 0; channel < extents[0]; ++channel) {
            moved.push_back(values[static_cast<std::size_t>(channel * plane + place)]);
        }
    }
    return moved;
}

/// What a change makes of the picture, in one of the layouts.
std::vector<float> changed(GoldenChange const& golden, bool channels_last) {
    auto values = laid_out(picture(golden.extents), golden.extents, channels_last);
    auto const& e = golden.extents;
    GridShape const shape(channels_last ? std::vector{e[1], e[2], e[0]} : e,
                          channels_last ? std::vector<std::size_t>{0, 1}
                                        : std::vector<std::size_t>{1, 2});
    SampleForm form{.input = {.type = h5::Type::u8}};
    SampleBuffers buffers;
    if (golden.name.ends_with("mask")) { // a target of an input that does not matter
        form.target = PlaceTarget{.shape = {}, .places = shape.places, .classes = true};
        auto input = values;
        AugmentedSample sample(form, Grid<float>(input, shape, buffers.spare), buffers);
        sample.real_target.emplace(values, shape, buffers.target_spare);
        kernels.at(golden.name)(sample, golden.parameters);
        sample.finish();
        return values;
    }
    AugmentedSample sample(form, Grid<float>(values, shape, buffers.spare), buffers);
    kernels.at(golden.name)(sample, golden.parameters);
    sample.finish();
    return values;
}

} // namespace

TEST_CASE("changes of given parameters are torchvision's") {
    std::size_t count = 0;
    for (auto const& line : test::golden_lines("augmentations.txt")) {
        GoldenChange const golden(line);
        CAPTURE(golden.name, golden.extents, golden.parameters);
        auto const made = changed(golden, false);
        REQUIRE(made.size() == golden.expected.size());
        // theirs finds places in float32
        bool const is_warped = golden.name == "affine" || golden.name.ends_with("augment");
        double const tolerance = is_warped ? 1e-5 : 1e-6;
        for (std::size_t at = 0; at < made.size(); ++at) {
            CAPTURE(at);
            CHECK(std::abs(made[at] - golden.expected[at]) <= tolerance);
        }
        CHECK(changed(golden, true) == laid_out(made, golden.extents, true));
        ++count;
    }
    CHECK(count > 80);
}
