#include "base/text.hpp"
#include "data/augment.hpp"
#include "data/augment/entry.hpp"
#include "data/augment/speed.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

/// An entry of each kind, with a chance to change a sample.
std::vector<std::string> const entries{"flip",          "crop:2",        "resized-crop:0.3:0.8",
                                       "shift:2",       "speed:0.8:1.3", "affine:20:0.1:0.9:1.1:5",
                                       "noise:0.1",     "gain:6",        "mask:2:2",
                                       "erase:0.1:0.3", "blur:3",        "colour:0.4:0.4:0.4:0.1",
                                       "gray@0.5",      "gamma:0.5:2",   "sharpness:2",
                                       "posterize:3",   "solarize:0.5",  "invert",
                                       "autocontrast",  "equalize",      "randaugment:2:15",
                                       "trivialaugment"};

constexpr std::int64_t height = 20;
constexpr std::int64_t width = 16;
constexpr std::size_t elements = 3 * height * width;

SampleForm form_of_pictures(bool channels_last) {
    SampleForm form{.input = {.name = "inputs", .type = h5::Type::u8, .shape = {3, height, width}},
                    .axes = {.places = {1, 2}},
                    .mean = {0.4, 0.5, 0.3},
                    .std = {0.2, 0.3, 0.25},
                    .channels_last = channels_last,
                    .has_labels = true};
    if (channels_last) {
        form.input.shape = {height, width, 3};
        form.axes.places = {0, 1};
    }
    return form;
}

/// A picture's colour, by its number, channel and place, normalised.
float colour_of(std::int64_t sample, std::int64_t channel, std::int64_t place) {
    auto const level =
        static_cast<float>(
            mixed(static_cast<std::uint64_t>(sample * 1000000 + channel * 1000 + place / 5)) %
            256) /
        255;
    constexpr float means[]{0.4F, 0.5F, 0.3F};
    constexpr float deviations[]{0.2F, 0.3F, 0.25F};
    return (level - means[channel]) / deviations[channel];
}

Batch pictures(std::vector<std::int64_t> const& samples, bool channels_last) {
    Batch batch;
    batch.indices = samples;
    batch.fields.resize(2);
    for (auto const sample : samples) {
        for (std::int64_t at = 0; at < std::int64_t(elements); ++at) {
            auto const places = height * width;
            batch.fields[0].reals.push_back(channels_last
                                                ? colour_of(sample, at % 3, at / 3)
                                                : colour_of(sample, at / places, at % places));
        }
    }
    return batch;
}

std::vector<float> picture_in(Batch const& batch, std::size_t which) {
    auto const first = batch.inputs().begin() + std::ptrdiff_t(which * elements);
    return {first, first + std::ptrdiff_t(elements)};
}

} // namespace

TEST_CASE("each kind of change depends on the sample and the epoch alone") {
    std::set<std::string_view> seen;
    for (auto const& entry : entries) {
        CAPTURE(entry);
        seen.insert(std::string_view(entry).substr(0, entry.find_first_of(":@")));
        Augmentation const change(entry, form_of_pictures(false), 5);
        auto const before = pictures({3, 1, 4, 15, 9, 2, 6, 5}, false);
        auto together = before;
        change.apply(together, 2);
        CHECK((together.inputs() != before.inputs()));
        for (std::size_t i = 0; i < before.indices.size(); ++i) {
            auto alone = pictures({before.indices[i]}, false);
            change.apply(alone, 2);
            CHECK((picture_in(alone, 0) == picture_in(together, i)));
        }
        auto later = before;
        change.apply(later, 3);
        CHECK((later.inputs() != together.inputs()));
        CHECK(std::ranges::all_of(together.inputs(),
                                  [](float value) { return std::isfinite(value); }));
    }
    for (auto const& kind : change_kinds()) {
        CAPTURE(kind.name);
        CHECK((kind.make == nullptr || seen.count(kind.name) == 1));
    }
}

TEST_CASE("changes do not depend on where the channels are stored") {
    for (auto const& entry : entries) {
        if (entry.starts_with("noise")) { // drawn in the order in which values are stored
            continue;
        }
        CAPTURE(entry);
        auto first = pictures({0, 1, 2, 3, 4, 5}, false);
        auto last = pictures({0, 1, 2, 3, 4, 5}, true);
        auto const both = concat(entry, ", flip:");
        Augmentation(both + "1", form_of_pictures(false), 7).apply(first, 0);
        Augmentation(both + "0", form_of_pictures(true), 7).apply(last, 0);
        std::size_t differences = 0;
        for (std::size_t sample = 0; sample < 6; ++sample) {
            auto const one = picture_in(first, sample);
            auto const other = picture_in(last, sample);
            for (std::size_t at = 0; at < elements; ++at) {
                differences += one[at] == other[at % 320 * 3 + at / 320] ? 0 : 1;
            }
        }
        CHECK(differences == 0);
    }
}

TEST_CASE("classes of places move with their picture") {
    for (auto const& entry : entries) {
        auto const name = std::string_view(entry).substr(0, entry.find_first_of(":@"));
        auto const kinds = change_kinds();
        bool const moves = std::ranges::find(kinds, name, &ChangeKind::name)->moves;
        // changes of colours would hide where the classes are
        bool const is_policy = name.ends_with("augment");
        for (bool const real : {false, true}) {
            for (h5::Shape const& shape : {h5::Shape{24, 20}, {1, 24, 20}, {24, 20, 1}}) {
                CAPTURE(entry, real, shape);
                SampleForm form{
                    .input = {.name = "inputs", .type = h5::Type::u8, .shape = {1, 24, 20}},
                    .axes = {.places = {1, 2}}};
                form.target = PlaceTarget{1, shape, *places_of(shape, form.input, form.axes), true};
                Batch batch;
                batch.indices.resize(12);
                std::iota(batch.indices.begin(), batch.indices.end(), 0);
                batch.fields.resize(2);
                for (std::int64_t at = 0; at < 12 * 24 * 20; ++at) {
                    auto const y = at % 480 / 20;
                    auto const x = at % 20;
                    bool const inside = y > 3 && y < 16 && x > 8 && x < 17;
                    batch.fields[0].reals.push_back(inside ? 1 : 0);
                    batch.fields[1].wholes.push_back(inside ? 1 : 0);
                }
                auto const before = batch.fields[1].wholes;
                if (real) {
                    batch.fields[1].reals.assign(before.begin(), before.end());
                    batch.fields[1].wholes.clear();
                }
                Augmentation(entry, form, 3).apply(batch, 1);
                if (real) {
                    batch.fields[1].wholes.assign(batch.fields[1].reals.begin(),
                                                  batch.fields[1].reals.end());
                }
                CHECK((batch.fields[1].wholes != before) == moves);
                std::size_t elsewhere = 0;
                for (std::size_t at = 0; at < before.size() && moves && !is_policy; ++at) {
                    auto const value = static_cast<double>(batch.fields[0].reals[at]);
                    auto const target = static_cast<double>(batch.fields[1].wholes[at]);
                    elsewhere += std::abs(value - target) < 0.76 ? 0 : 1;
                }
                CHECK(elsewhere == 0);
            }
        }
    }
}

TEST_CASE("dimensions of a target are found by the extents of the places") {
    using Places = std::vector<std::size_t>;
    FieldInfo const first{.shape = {3, 8, 6}};
    FieldInfo const last{.shape = {8, 8, 8}};
    CHECK(places_of({8, 6}, first, {.places = {1, 2}}) == Places{0, 1});
    CHECK(places_of({1, 8, 6}, first, {.places = {1, 2}}) == Places{1, 2});
    CHECK(places_of({8, 6, 2}, first, {.places = {1, 2}}) == Places{0, 1});
    CHECK(places_of({8, 8, 8}, last, {.places = {0, 1}}) == Places{0, 1});
    CHECK(places_of({8, 8, 8}, last, {.places = {1, 2}}) == Places{1, 2});
    CHECK(places_of({6, 8}, first, {.places = {1, 2}}) == std::nullopt);
    CHECK(places_of({2}, first, {.places = {1, 2}}) == std::nullopt);
}

TEST_CASE("an entry is applied with its probability") {
    for (auto const& [entry, share] : {std::pair{"noise:1@0.25", 0.25},
                                       {"flip@0.8", 0.8},
                                       {"invert", 0.5},
                                       {"gray", 0.1},
                                       {"gain:3", 1.0}}) {
        CAPTURE(entry);
        std::vector<std::int64_t> samples(600);
        std::iota(samples.begin(), samples.end(), 0);
        auto const before = pictures(samples, false);
        auto batch = before;
        Augmentation(entry, form_of_pictures(false), 1).apply(batch, 0);
        double changed = 0;
        for (std::size_t i = 0; i < samples.size(); ++i) {
            changed += picture_in(batch, i) == picture_in(before, i) ? 0 : 1;
        }
        CHECK(changed / 600 == Approx(share).margin(0.06));
    }
}

TEST_CASE("colours are those before normalisation") {
    SampleForm plain = form_of_pictures(false);
    plain.mean = plain.std = {};
    auto normalised = pictures({0, 1, 2}, false);
    auto natural = normalised;
    auto const channel = [](std::size_t at) { return at % elements / (height * width); };
    auto const& form = form_of_pictures(false);
    for (std::size_t at = 0; at < natural.fields[0].reals.size(); ++at) {
        auto& value = natural.fields[0].reals[at];
        value = value * float(form.std[channel(at)]) + float(form.mean[channel(at)]);
    }
    auto const entry = "colour:0.5:0.5:0.5:0.3, gamma:0.5:0.6, blur:3";
    Augmentation(entry, form, 1).apply(normalised, 0);
    Augmentation(entry, plain, 1).apply(natural, 0);
    for (std::size_t at = 0; at < natural.fields[0].reals.size(); ++at) {
        auto const expected =
            (natural.fields[0].reals[at] - form.mean[channel(at)]) / form.std[channel(at)];
        CHECK(normalised.inputs()[at] == Approx(expected).margin(1e-4));
    }
}

TEST_CASE("real values that are no colours are refused, where colours are needed") {
    auto form = form_of_pictures(false);
    form.mean = form.std = {};
    form.input.type = h5::Type::f32;
    auto batch = pictures({0}, false); // normalised: some are below 0
    CHECK(test::error_of([&] { Augmentation("invert", form, 0).apply(batch, 0); }).code() ==
          ExitCode::data);
    CHECK_NOTHROW(Augmentation("blur:3, affine:10", form, 0).apply(batch, 0));
}

TEST_CASE("a series is played faster, or from a later place") {
    SampleForm const form{.input = {.shape = {5, 2}}, .axes = {.places = {0}}};
    GridShape const shape({5, 2}, {0});
    SampleBuffers buffers;
    std::vector<float> const series{0, 0, 10, 1, 20, 2, 30, 3, 40, 4};
    auto const played = [&](double factor, double start) {
        auto values = series;
        AugmentedSample sample(form, Grid<float>(values, shape, buffers.spare), buffers);
        play_faster(sample, 0, factor, start);
        return values;
    };
    CHECK(played(2, 0) == std::vector<float>{0, 0, 20, 2, 40, 4, 0, 0, 0, 0});
    CHECK(played(0.5, 1.5) == std::vector<float>{15, 1.5, 20, 2, 25, 2.5, 30, 3, 35, 3.5});
    CHECK(played(1, 0) == series);
    auto batch = Batch{.indices = {0, 1, 2, 3, 4, 5, 6, 7}, .fields = std::vector<Values>(1)};
    for (int i = 0; i < 8; ++i) {
        auto& values = batch.fields[0].reals;
        values.insert(values.end(), series.begin(), series.end());
    }
    Augmentation("shift:1", form, 2).apply(batch, 0);
    std::set<std::vector<float>> seen;
    for (std::size_t i = 0; i < 8; ++i) {
        auto const first = batch.inputs().begin() + std::ptrdiff_t(i * 10);
        seen.insert({first, first + 10});
    }
    CHECK(seen == std::set<std::vector<float>>{series,
                                               {0, 0, 0, 0, 10, 1, 20, 2, 30, 3},
                                               {10, 1, 20, 2, 30, 3, 40, 4, 40, 4}});
}

TEST_CASE("a rectangle of a share of the area is erased") {
    std::vector<std::int64_t> samples(40);
    std::iota(samples.begin(), samples.end(), 0);
    auto batch = pictures(samples, false);
    std::ranges::fill(batch.fields[0].reals, 1.0F);
    Augmentation("erase:0.2:0.3@1", form_of_pictures(false), 1).apply(batch, 0);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        auto const values = picture_in(batch, i);
        auto const erased = std::ranges::count(values, 0.0F);
        CHECK(erased % 3 == 0);
        CHECK(double(erased) / elements == Approx(0.25).margin(0.1));
        CHECK(std::ranges::count(values, 1.0F) == std::int64_t(elements) - erased);
    }
}

TEST_CASE("entries that do not fit the samples are refused") {
    auto two_channels = form_of_pictures(false);
    two_channels.input.shape = {2, height, width};
    auto wide = form_of_pictures(false);
    wide.input.type = h5::Type::u16;
    auto other_means = form_of_pictures(false);
    other_means.channels_last = true;
    SampleForm const table{.input = {.shape = {7}}, .axes = {}};
    SampleForm const series{.input = {.shape = {20, 4}}, .axes = {.places = {0}}};
    auto const pictured = form_of_pictures(false);
    for (auto const& [entry, form, why] :
         {std::tuple{"gray", two_channels, "1 or 3 channels"},
          {"colour:0.4", series, "height"},
          {"randaugment", wide, "white"},
          {"colour:0.1", other_means, "means"},
          {"affine:10", series, "height and a width"},
          {"resized-crop", table, "features alone"},
          {"blur:3", series, "height"},
          {"erase", table, "height"},
          {"speed:1:2", table, "series"},
          {"shift:3", table, "series"},
          {"gain:3", other_means, "means"},
          {"blur:4", pictured, "no middle"},
          {"blur:41", pictured, "only 20 elements"},
          {"blur:3:2:1", pictured, "empty"},
          {"speed:2:1", pictured, "empty"},
          {"flip@0", pictured, "probability"},
          {"flip@x", pictured, "probability"},
          {"flip@1.5", pictured, "probability"},
          {"colour", pictured, "expected colour:BRIGHTNESS"},
          {"colour:0.1:0.1:0.1:0.7", pictured, "HUE is a number from 0 to 0.5"},
          {"randaugment:2:31", pictured, "from 0 to 30"},
          {"gray:1", pictured, "expected gray"},
          {"posterize:2.5", pictured, "whole number"},
          {"mixes", pictured, "unknown"}}) {
        CAPTURE(entry, why);
        auto const error = test::error_of([&] { Augmentation(entry, form, 0); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(error.text().why.find(why) != std::string::npos);
    }
    auto stored_last = form_of_pictures(true);
    stored_last.axes.places = {1, 2}; // a layout that the samples do not have
    auto const error = test::error_of([&] { Augmentation("gray", stored_last, 0); });
    CHECK(error.text().why.ends_with("(channels-first by model.layout)"));
    CHECK(error.text().next == "Set model.layout = channels-last, or leave out gray");
    CHECK(moving_entries("noise:1, flip@0.3,gray,affine:3,flip") ==
          std::vector<std::string>{"flip", "affine"});
}

namespace {

/// Samples whose values are all their own number, with a label or a real value that is the same.
Batch constant_pictures(std::int64_t samples, bool labels) {
    Batch batch;
    batch.fields.resize(2);
    for (std::int64_t i = 0; i < samples; ++i) {
        batch.indices.push_back(10 + i);
        batch.fields[0].reals.insert(batch.fields[0].reals.end(), elements, float(i));
        if (labels) {
            batch.fields[1].wholes.push_back(i);
        } else {
            batch.fields[1].reals.push_back(float(i));
        }
    }
    return batch;
}

} // namespace

TEST_CASE("samples are mixed with others of their micro-batch, and their targets with them") {
    for (bool const last : {false, true}) {
        for (auto const* entry : {"mixup:0.4", "cutmix:1"}) {
            CAPTURE(entry, last);
            Augmentation const change(entry, form_of_pictures(last), 3);
            std::set<float> shares;
            for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
                auto batch = constant_pictures(5, true);
                change.apply(batch, epoch);
                REQUIRE(batch.fields.size() == 4);
                auto const share = batch.fields[3].reals[0];
                shares.insert(share);
                CHECK((share >= 0 && share <= 1));
                for (std::size_t i = 0; i < 5; ++i) {
                    CHECK(batch.fields[1].wholes[i] == std::int64_t(i));
                    auto const other = batch.fields[2].wholes[i];
                    CHECK(other != std::int64_t(i));
                    CHECK(batch.fields[3].reals[i] == share);
                    auto const values = picture_in(batch, i);
                    double sum = 0;
                    for (auto const value : values) {
                        sum += value;
                    }
                    CHECK(sum / elements ==
                          Approx(share * float(i) + (1 - share) * float(other)).margin(1e-3));
                    auto const own = std::ranges::count(values, float(i));
                    auto const of_other = std::ranges::count(values, float(other));
                    bool const cuts = std::string_view(entry).starts_with("cut");
                    CHECK((!cuts || own + of_other == std::int64_t(elements)));
                }
                auto again = constant_pictures(5, true);
                change.apply(again, epoch);
                CHECK((again.inputs() == batch.inputs()));
            }
            CHECK(shares.size() > 10);
        }
    }
    auto none = constant_pictures(0, true); // of a replica that an incomplete step has none for
    Augmentation("cutmix:1", form_of_pictures(false), 3).apply(none, 0);
    CHECK(none.fields.size() == 4);
    auto values = constant_pictures(5, false);
    auto form = form_of_pictures(false);
    form.has_labels = false;
    Augmentation("mixup:1", form, 3).apply(values, 0);
    REQUIRE(values.fields.size() == 2);
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(values.fields[1].reals[i] == Approx(picture_in(values, i)[7]).margin(1e-6));
    }
}

TEST_CASE("a micro-batch is mixed in one way, with the probabilities of the entries") {
    Augmentation const change("mixup:1@0.3, cutmix:1@0.2", form_of_pictures(false), 3);
    int plain = 0;
    int cut = 0;
    for (std::int64_t epoch = 0; epoch < 1000; ++epoch) {
        auto batch = constant_pictures(2, true);
        change.apply(batch, epoch);
        auto const values = picture_in(batch, 0);
        auto const kept = std::ranges::count(values, 0.0F) + std::ranges::count(values, 1.0F);
        bool const is_plain = batch.fields[3].reals[0] == 1;
        plain += is_plain ? 1 : 0;
        cut += !is_plain && kept == std::int64_t(elements) ? 1 : 0;
    }
    CHECK(plain / 1000.0 == Approx(0.5).margin(0.06));
    CHECK(cut / 1000.0 == Approx(0.2).margin(0.05));
    SampleDraws draws(1);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < 4000; ++i) {
        auto const share = beta_draw(0.3, draws);
        sum += share;
        squares += (share - 0.5) * (share - 0.5);
    }
    CHECK(sum / 4000 == Approx(0.5).margin(0.02));
    CHECK(squares / 4000 == Approx(0.25 / 1.6).margin(0.01)); // 1 / (4 (2 alpha + 1))
    for (auto const& [entry, why] :
         {std::pair{"mixup:1, flip", "after all"}, {"mixup:1@0.7, cutmix:1@0.7", "together"}}) {
        auto const error = test::error_of([&] { Augmentation(entry, form_of_pictures(false), 0); });
        CHECK(error.text().why.find(why) != std::string::npos);
    }
}
