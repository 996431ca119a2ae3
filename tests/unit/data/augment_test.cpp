#include "data/augment.hpp"

#include <cmath>
#include <numeric>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

FieldInfo images(h5::Shape const& shape) {
    return {.name = "inputs", .type = h5::Type::f32, .shape = shape};
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
    Augmentation("flip", images({2, 3}), 7).apply(batch, 0);
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
    Augmentation("flip:0", images({2, 3}), 7).apply(rows, 0);
    bool any = false;
    for (std::size_t i = 0; i < 20; ++i) {
        any = any || sample_of(rows, i, 6) == std::vector<float>{4, 5, 6, 1, 2, 3};
    }
    CHECK(any);
}

TEST_CASE("what happens to a sample does not depend on the batch it is in, but on the epoch") {
    Augmentation const change("flip, crop:2, noise:0.5", images({1, 5, 5}), 3);
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
    Augmentation("flip, crop:2, noise:0.5", images({1, 5, 5}), 4).apply(other, 4);
    CHECK_FALSE(other.inputs() == together.inputs());
}

TEST_CASE("a crop moves both extents by up to so many places, and zeros come in") {
    auto batch = batch_of(100, 9);
    Augmentation const change("crop:1", images({3, 3}), 1);
    CHECK(change.moves_places());
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
    Augmentation("crop:9", images({3, 3}), 1).apply(far, 0);
}

TEST_CASE("noise has the deviation that was asked for") {
    auto batch = batch_of(100, 101);
    Augmentation("noise:0.5", images({101}), 1).apply(batch, 0);
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
    Augmentation const change("mask:2:1", info, 5);
    CHECK_FALSE(change.moves_places());
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

TEST_CASE("what cannot be done is told at the start") {
    CHECK(Augmentation("none", images({3}), 0).empty());
    for (auto const* wrong :
         {"flap", "crop", "crop:x", "crop:-1", "noise:", "mask:1", "flip:2", "flip,", "crop:1.5"}) {
        CAPTURE(wrong);
        CHECK(test::error_of([&] {
                  Augmentation(wrong, images({3, 3}), 0);
              }).code() == ExitCode::usage);
    }
    CHECK(test::error_of([&] { Augmentation("crop:1", images({3}), 0); }).code() ==
          ExitCode::usage);
    auto tokens = images({3});
    tokens.whole = true;
    CHECK(test::error_of([&] { Augmentation("noise:1", tokens, 0); }).code() == ExitCode::usage);
}

TEST_CASE("numbers of a change may stand behind a space") {
    CHECK_NOTHROW(Augmentation("crop: 2, noise: 0.5", images({1, 5, 5}), 3));
}
