#include "batches/pictures.hpp"

#include "catch.hpp"

using namespace lockstep;
using train::pictures_of;

namespace {
std::vector<std::uint8_t> first_of(std::vector<train::Picture> const& pictures, std::size_t many) {
    auto const& pixels = pictures.at(0).pixels;
    return {pixels.begin(), pixels.begin() + static_cast<std::ptrdiff_t>(many)};
}
} // namespace

TEST_CASE("each sample is drawn from its least value to its largest") {
    auto const samples = torch::arange(32, torch::kFloat32).view({2, 4, 4});
    auto const pictures = pictures_of(samples, false, 9);
    REQUIRE(pictures.size() == 2);
    for (auto const& picture : pictures) {
        CHECK(picture.width == 4);
        CHECK(picture.height == 4);
        CHECK(picture.channels == 1);
        CHECK(picture.pixels.front() == 0);
        CHECK(picture.pixels.back() == 255);
    }
    CHECK(pictures_of(samples, false, 1).size() == 1);
    CHECK(pictures_of(torch::ones({1, 4, 4}), false, 1).at(0).pixels ==
          std::vector<std::uint8_t>(16, 0));
}

TEST_CASE("colours are interleaved, wherever the channels were") {
    auto const first = torch::rand({1, 3, 5, 6});
    auto const pictures = pictures_of(first, false, 1);
    REQUIRE(pictures.size() == 1);
    CHECK(pictures[0].width == 6);
    CHECK(pictures[0].height == 5);
    CHECK(pictures[0].channels == 3);
    CHECK(pictures[0].pixels.size() == 90);
    auto const last = pictures_of(first.movedim(1, -1), true, 1);
    REQUIRE(last.size() == 1);
    CHECK(last[0].pixels == pictures[0].pixels);
}

TEST_CASE("bytes are drawn as the file has them, whatever they were normalised by") {
    auto const stored = torch::arange(10, 106).view({2, 3, 4, 4}).to(torch::kUInt8);
    data::Facts facts{.inputs = {{.name = "inputs", .type = h5::Type::u8, .shape = {3, 4, 4}}},
                      .mean = {0.485, 0.456, 0.406},
                      .std = {0.229, 0.224, 0.225}};
    auto const mean = torch::tensor(facts.mean, torch::kFloat32).view({1, 3, 1, 1});
    auto const std = torch::tensor(facts.std, torch::kFloat32).view({1, 3, 1, 1});
    auto const inputs = (stored.to(torch::kFloat32) / 255 - mean) / std;
    CHECK(train::as_stored(inputs, facts).equal(stored));
    auto const pictures = pictures_of(train::as_stored(inputs, facts), false, 2);
    CHECK(first_of(pictures, 6) == std::vector<std::uint8_t>{10, 26, 42, 11, 27, 43});
    facts.channels_last = true;
    facts.inputs.front().shape = {4, 4, 3};
    CHECK(train::as_stored(inputs.movedim(1, -1), facts).equal(stored.movedim(1, -1)));
    facts.inputs.front().type = h5::Type::f32;
    CHECK(train::as_stored(inputs.movedim(1, -1), facts)
              .allclose(stored.movedim(1, -1).to(torch::kFloat32) / 255));
    facts = {.inputs = facts.inputs};
    CHECK(train::as_stored(inputs, facts).equal(inputs));
}

TEST_CASE("of clips the middle frame, of many channels the middle one") {
    auto clip = torch::zeros({1, 1, 3, 4, 4});
    clip.select(2, 1).copy_(torch::eye(4));
    CHECK(first_of(pictures_of(clip, false, 1), 6) ==
          std::vector<std::uint8_t>{255, 0, 0, 0, 0, 255});
    auto many = torch::zeros({1, 5, 4, 4});
    many.select(1, 2).copy_(torch::eye(4));
    auto const pictures = pictures_of(many, false, 1);
    CHECK(pictures.at(0).channels == 1);
    CHECK(first_of(pictures, 6) == std::vector<std::uint8_t>{255, 0, 0, 0, 0, 255});
}

TEST_CASE("what is no image is not drawn") {
    CHECK(pictures_of(torch::rand({4, 6}), false, 4).empty());
    CHECK(pictures_of(torch::rand({4, 2, 3}), false, 4).empty());
    CHECK(pictures_of(torch::zeros({4, 8, 8}, torch::kInt64), false, 4).empty());
    CHECK(pictures_of(torch::full({1, 8, 8}, NAN), false, 4).empty());
}
