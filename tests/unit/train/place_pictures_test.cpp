#include "batches/place_pictures.hpp"
#include "lockstep/task/task.hpp"

#include "catch.hpp"

using namespace lockstep;
using namespace lockstep::train;

namespace {

/// The colour of a picture's pixel.
std::vector<int> pixel(Picture const& picture, std::int64_t row, std::int64_t column) {
    auto const at = static_cast<std::size_t>((row * picture.width + column) * 3);
    return {picture.pixels.at(at), picture.pixels.at(at + 1), picture.pixels.at(at + 2)};
}

bool is_grey(std::vector<int> const& colour) {
    return colour[0] == colour[1] && colour[1] == colour[2];
}

} // namespace

TEST_CASE("the slice with the most mistakes is shown, the middle one where none is worse") {
    auto const truth = torch::zeros({5, 4, 4}, torch::kInt64);
    auto guess = truth.clone();
    CHECK(worst_slice({truth, guess}) == 2);
    guess[1][0][0] = 1;
    guess[4][0][0] = 1;
    CHECK(worst_slice({truth, guess}) == 1);
    guess[4][3][3] = 2;
    CHECK(worst_slice({truth, guess}) == 4);
    auto some = truth.clone();
    some[4] = -1; // does not count
    CHECK(worst_slice({some, guess}) == 1);
    CHECK(worst_slice({truth[0], guess[0]}) == -1);
}

TEST_CASE("the shares of classes are told, the largest first, and an empty truth by its name") {
    auto const classes = torch::tensor({1, 1, 1, 0, 2, 2, 2, 2, -1, -1}, torch::kInt64);
    CHECK(shares_text(classes, {"none", "edema"}) == "2 50 %, edema 37.5 %, none 12.5 %");
    CHECK(shares_text(torch::zeros({4, 4}, torch::kInt64), {"none", "edema"}) == "only none");
    CHECK(shares_text(torch::arange(9, torch::kInt64), {}).ends_with("7 11.1 %, …"));
}

TEST_CASE("the truth is as the samples store it, without the places that do not count") {
    config::Task chosen;
    chosen.kind = "segmentation";
    chosen.own = {{"classes", "2"}, {"ignore-label", "255"}};
    task::Samples samples;
    samples.inputs = {{"inputs", h5::Type::f32, {1, 2, 2}}};
    samples.targets = {{"targets", h5::Type::u8, {1, 2, 2}, true}};
    auto const task = task::make_task(chosen, samples);
    auto const stored = torch::tensor({0, 1, 255, 1}, torch::kInt64).view({1, 1, 2, 2});
    auto const output = torch::tensor({1.0F, 0.0F, 0.0F, 1.0F, 0.0F, 1.0F, 1.0F, 0.0F});
    auto const places =
        classes_of_places(*task, {torch::zeros({1, 1, 2, 2}), stored}, output.view({2, 2, 2}));
    CHECK(places.truth.equal(torch::tensor({0, 1, -1, 1}, torch::kInt64).view({2, 2})));
    CHECK(places.guess.equal(torch::tensor({0, 1, 1, 0}, torch::kInt64).view({2, 2})));
}

TEST_CASE("a sample is drawn next to its true and its predicted classes") {
    auto const sample = torch::arange(16, torch::kFloat32).view({1, 4, 4});
    auto truth = torch::zeros({4, 4}, torch::kInt64);
    auto guess = truth.clone();
    truth[3][3] = 1;
    truth[3][0] = -1;
    guess[3][3] = 2;
    auto const drawn = picture_of_places(sample, false, {truth, guess}, -1);
    REQUIRE(drawn);
    constexpr std::int64_t side = 128;
    constexpr std::int64_t next = side + 4;
    CHECK(drawn->height == side);
    CHECK(drawn->width == 3 * next - 4);
    CHECK(drawn->channels == 3);
    CHECK(pixel(*drawn, 0, side) == std::vector<int>{255, 255, 255});
    CHECK(pixel(*drawn, 127, 127) == std::vector<int>{255, 255, 255}); // the image as it is
    CHECK_FALSE(is_grey(pixel(*drawn, 127, next + 127)));
    CHECK_FALSE(is_grey(pixel(*drawn, 127, 2 * next + 127)));
    CHECK(pixel(*drawn, 127, next + 127) != pixel(*drawn, 127, 2 * next + 127));
    CHECK(pixel(*drawn, 60, next + 60) == pixel(*drawn, 60, 60)); // the first class has no colour
    CHECK(pixel(*drawn, 127, 0)[0] == 204);
    CHECK(pixel(*drawn, 127, next)[0] == 51); // does not count
    CHECK_FALSE(picture_of_places(sample, false, {truth.slice(0, 0, 3), guess}, -1));
    CHECK_FALSE(picture_of_places(torch::zeros({3}), false, {truth, guess}, -1));
}

TEST_CASE("of a volume, the same slice is shown of the sample, wherever its channels are") {
    auto volume = torch::zeros({1, 6, 8, 8});
    volume.select(1, 4).copy_(torch::eye(8));
    PlaceClasses const places{torch::zeros({8, 8}, torch::kInt64),
                              torch::zeros({8, 8}, torch::kInt64)};
    auto const first = picture_of_places(volume, false, places, 4);
    auto const last = picture_of_places(volume.movedim(0, -1), true, places, 4);
    auto const none = picture_of_places(volume[0], false, places, 4);
    REQUIRE((first && last && none));
    CHECK(pixel(*first, 0, 0) == std::vector<int>{255, 255, 255});
    CHECK(pixel(*first, 0, 16) == std::vector<int>{0, 0, 0});
    CHECK(last->pixels == first->pixels);
    CHECK(none->pixels == first->pixels);
}

TEST_CASE("the classes of a slice are read back from their text as they were") {
    auto const classes = torch::tensor({0, 0, 0, 7, -1, -1}, torch::kInt64).view({2, 3});
    CHECK(text_of_slice(classes) == "2 3 0x3 7x1 -1x2");
    CHECK(slice_of_text(text_of_slice(classes)).equal(classes));
}
