#include "data/augment.hpp"

#include <cmath>
#include <numeric>
#include <set>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

FieldInfo images(h5::Shape const& shape) {
    return {.name = "inputs", .type = h5::Type::f32, .shape = shape};
}

SampleAxes guessed(Facts facts, FieldInfo const& input) {
    facts.inputs = {input};
    return guessed_axes(facts);
}

Augmentation augmentation(std::string const& wanted, FieldInfo const& input, std::uint64_t seed) {
    return {wanted, {.input = input, .axes = guessed({}, input)}, seed};
}

/// Samples 0, 1, …, each of values 1, 2, 3, …
Batch batch_of(std::int64_t samples, std::size_t elements) {
    Batch batch;
    batch.indices.resize(static_cast<std::size_t>(samples));
    std::iota(batch.indices.begin(), batch.indices.end(), 0);
    batch.fields.resize(2);
    for (std::int64_t i = 0; i < samples; ++i) {
        for (std::size_t at = 0; at < elements; ++at) {
            batch.fields[0].reals.push_back(static_cast<float>(at + 1));
        }
    }
    return batch;
}

std::vector<float> sample_of(Batch const& batch, std::size_t which, std::size_t elements) {
    auto const first = batch.inputs().begin() + static_cast<std::ptrdiff_t>(which * elements);
    return {first, first + static_cast<std::ptrdiff_t>(elements)};
}

} // namespace

TEST_CASE("a sample is mirrored or left, about as often") {
    auto batch = batch_of(200, 6);
    augmentation("flip", images({2, 3}), 7).apply(batch, 0);
    int flipped = 0;
    for (std::size_t i = 0; i < 200; ++i) {
        auto const values = sample_of(batch, i, 6);
        bool const was = values == std::vector<float>{3, 2, 1, 6, 5, 4};
        CHECK((was || values == std::vector<float>{1, 2, 3, 4, 5, 6}));
        flipped += was ? 1 : 0;
    }
    CHECK(flipped > 70);
    CHECK(flipped < 130);
    auto rows = batch_of(20, 6);
    augmentation("flip:0", images({2, 3}), 7).apply(rows, 0);
    bool any = false;
    for (std::size_t i = 0; i < 20; ++i) {
        any = any || sample_of(rows, i, 6) == std::vector<float>{4, 5, 6, 1, 2, 3};
    }
    CHECK(any);
}

TEST_CASE("what happens to a sample does not depend on the batch it is in, but on the epoch") {
    auto const change = augmentation("flip, crop:2, noise:0.5", images({1, 5, 5}), 3);
    auto together = batch_of(9, 25);
    change.apply(together, 4);
    auto alone = batch_of(1, 25);
    alone.indices = {6};
    change.apply(alone, 4);
    CHECK(sample_of(alone, 0, 25) == sample_of(together, 6, 25));
    auto later = batch_of(9, 25);
    change.apply(later, 5);
    CHECK_FALSE(later.inputs() == together.inputs());
    auto other = batch_of(9, 25);
    augmentation("flip, crop:2, noise:0.5", images({1, 5, 5}), 4).apply(other, 4);
    CHECK_FALSE(other.inputs() == together.inputs());
}

TEST_CASE("a crop moves both extents by up to so many places, and zeros come in") {
    auto batch = batch_of(100, 9);
    auto const change = augmentation("crop:1", images({3, 3}), 1);
    change.apply(batch, 0);
    std::vector<std::vector<float>> seen;
    for (std::size_t i = 0; i < 100; ++i) {
        auto const values = sample_of(batch, i, 9);
        if (std::find(seen.begin(), seen.end(), values) == seen.end()) {
            seen.push_back(values);
        }
    }
    CHECK(seen.size() == 9);
    CHECK(std::find(seen.begin(), seen.end(), std::vector<float>{0, 0, 0, 0, 1, 2, 0, 4, 5}) !=
          seen.end());
    CHECK(std::find(seen.begin(), seen.end(), std::vector<float>{5, 6, 0, 8, 9, 0, 0, 0, 0}) !=
          seen.end());
    auto far = batch_of(50, 9); // further than the sample is wide
    augmentation("crop:9", images({3, 3}), 1).apply(far, 0);
}

TEST_CASE("noise has the deviation that was asked for") {
    auto batch = batch_of(100, 101);
    augmentation("noise:0.5", images({101}), 1).apply(batch, 0);
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < batch.inputs().size(); ++i) {
        double const change = batch.inputs()[i] - static_cast<double>(i % 101 + 1);
        sum += change;
        squares += change * change;
    }
    auto const count = static_cast<double>(batch.inputs().size());
    CHECK(std::abs(sum / count) < 0.02);
    CHECK(std::sqrt(squares / count) == Approx(0.5).epsilon(0.03));
}

TEST_CASE("runs of rows and of columns are masked, of samples of any number of rows") {
    Batch batch;
    batch.indices = {0, 1, 2};
    batch.fields.resize(2);
    batch.fields[0].offsets = {0, 4, 4, 10};
    batch.fields[0].reals.assign(30, 1);
    auto info = images({3});
    info.ragged = true;
    auto const change = augmentation("mask:2:1", info, 5);
    bool any = false;
    for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
        auto masked = batch;
        change.apply(masked, epoch);
        auto const& values = masked.fields[0].reals;
        auto const zeros = std::count(values.begin(), values.end(), 0.0F);
        any = any || zeros > 0;
        CHECK(zeros <= 2 * (2 * 3) + 4 + 6);
    }
    CHECK(any);
}

TEST_CASE("channels and features stay where they are, wherever they lie") {
    CHECK(channel_axis({8, 8, 3}) == 2);
    CHECK(channel_axis({4, 8, 8}) == 0);
    CHECK(channel_axis({8, 3, 8, 8}) == 1);
    for (h5::Shape const& none : {h5::Shape{8, 3}, {8, 8, 5}, {3, 8, 3}, {4, 3, 3}, {}}) {
        CHECK_FALSE(channel_axis(none));
    }
    CHECK(guessed({}, images({8, 8, 3})).places == std::vector<std::size_t>{0, 1});
    CHECK(guessed({}, images({3, 8, 8})).places == std::vector<std::size_t>{1, 2});
    CHECK(guessed({}, images({5, 8, 8, 1})).places == std::vector<std::size_t>{0, 1, 2});
    CHECK(guessed({}, images({8, 8})).places == std::vector<std::size_t>{0, 1});
    CHECK(guessed({}, images({8})).places.empty());
    // what the file says of its dimensions
    Facts const named{.columns = {"a", "b", "c", "d", "e"}};
    std::vector<double> const five(5);
    CHECK(guessed(named, images({6, 5})).places == std::vector<std::size_t>{0});
    CHECK(guessed(named, images({5, 5})).known);
    CHECK(guessed(named, images({6, 6, 5})).places == std::vector<std::size_t>{0, 1});
    CHECK(guessed(named, images({5})).places.empty());
    CHECK(guessed({.sample_rate = 16000}, images({40, 20})).places == std::vector<std::size_t>{0});
    CHECK(guessed({.mean = five}, images({8, 8, 5})).places == std::vector<std::size_t>{0, 1});
    CHECK(guessed({.mean = five}, images({5, 8, 8})).places == std::vector<std::size_t>{1, 2});
    CHECK(guessed({.mean = five}, images({5, 8})).places == std::vector<std::size_t>{1});
    CHECK(guessed({.mean = five}, images({5, 5})).places == std::vector<std::size_t>{0, 1});
    CHECK(axis_of_means({.inputs = {images({5, 8, 5})}, .mean = five}) == std::nullopt);
    CHECK(axis_of_means({.inputs = {images({8, 8, 5})}, .mean = {0}}) == std::nullopt);
    Batch batch; // of samples with 3, 0 and 2 rows of two features
    batch.indices = {0, 1, 2};
    batch.fields.resize(2);
    batch.fields[0].offsets = {0, 3, 3, 5};
    batch.fields[0].reals = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    auto frames = images({2});
    frames.ragged = true;
    Augmentation const flip("flip:0", {.input = frames, .axes = {.places = {0}}}, 2);
    Augmentation const crop("crop:1", {.input = frames, .axes = {.places = {0}}}, 2);
    std::set<std::vector<float>> flipped;
    std::set<std::vector<float>> moved;
    for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
        auto one = batch;
        flip.apply(one, epoch);
        auto const& values = one.fields[0].reals;
        flipped.insert({values.begin(), values.begin() + 6});
        auto other = batch;
        crop.apply(other, epoch);
        moved.insert({other.fields[0].reals.begin() + 6, other.fields[0].reals.end()});
    }
    CHECK(flipped == std::set<std::vector<float>>{{1, 2, 3, 4, 5, 6}, {5, 6, 3, 4, 1, 2}});
    CHECK(moved == std::set<std::vector<float>>{{7, 8, 9, 10}, {0, 0, 7, 8}, {9, 10, 0, 0}});
}

TEST_CASE("what has no mirror image is not flipped") {
    auto frames = images({2});
    frames.ragged = true;
    struct Case {
        char const* wanted;
        FieldInfo input;
        SampleAxes axes;
        char const* why;
    };
    SampleAxes const first{.places = {1, 2}};
    SampleAxes const last{.places = {0, 1}};
    SampleAxes const rows{.places = {0}};
    auto const six = images({6, 8, 8});
    auto const at_front = guessed({.mean = std::vector(6, 0.5), .std = std::vector(6, 1.0)}, six);
    auto const at_end = guessed({}, images({8, 8, 3}));
    for (auto const& [wanted, input, axes, why] :
         {Case{"flip", images({5}), guessed({}, images({5})), "a row of features"},
          Case{"crop:1", images({5}), guessed({}, images({5})), "a row of features"},
          Case{"mask:1:1", images({5}), guessed({}, images({5})), "rows and columns"},
          Case{"flip", frames, rows, "holds features"}, Case{"flip:1", frames, rows, "features"},
          Case{"flip", images({8, 5}), rows, "holds features"},
          Case{"flip:0", images({3, 8, 8}), first,
               "dimension 0 of a sample of shape [3, 8, 8] holds the channels (channels-first by "
               "model.layout)"},
          Case{"flip:2", images({8, 8, 3}), last, "(channels-last by model.layout)"},
          Case{"flip:0", six, at_front, "holds the channels"},
          Case{"flip:2", images({8, 8, 3}), at_end, "(channels-last by its elements"},
          Case{"mask:1:1", images({3, 4, 8, 8}), {.places = {1, 2, 3}}, "rows and columns"}}) {
        CAPTURE(wanted, why);
        auto const error =
            test::error_of([&] { Augmentation(wanted, {.input = input, .axes = axes}, 0); });
        CHECK(error.code() == ExitCode::usage);
        CHECK(error.text().why.find(why) != std::string::npos);
    }
    CHECK_NOTHROW(augmentation("flip:0", images({5}), 0));
    CHECK_NOTHROW(augmentation("flip:0", six, 0));
}

TEST_CASE("what cannot be done is told at the start") {
    CHECK(augmentation("none", images({3}), 0).empty());
    for (auto const* wrong :
         {"flap", "crop", "crop:x", "crop:-1", "noise:", "mask:1", "flip:2", "flip,", "crop:1.5"}) {
        CAPTURE(wrong);
        CHECK(test::error_of([&] {
                  augmentation(wrong, images({3, 3}), 0);
              }).code() == ExitCode::usage);
    }
    CHECK(test::error_of([&] { augmentation("crop:1", images({3}), 0); }).code() ==
          ExitCode::usage);
    auto tokens = images({3});
    tokens.whole = true;
    CHECK(test::error_of([&] { augmentation("noise:1", tokens, 0); }).code() == ExitCode::usage);
}

TEST_CASE("numbers of a change may stand behind a space") {
    CHECK_NOTHROW(augmentation("crop: 2, noise: 0.5", images({1, 5, 5}), 3));
}
