// Samples of several inputs and targets, ragged ones, targets that are no classes, bad values.

#include "data/lengths.hpp"
#include "data/look_through.hpp"
#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "error_of.hpp"
#include "put.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

/// Four samples: tokens (0, 1, 2, 3 of them), an image of 2 bytes, and a length in metres.
void write_fields(std::filesystem::path const& path, std::vector<std::int32_t> const& offsets,
                  std::vector<float> const& lengths = {0.5F, 1.5F, -2, 8}) {
    auto file = h5::File::create(path);
    test::put<std::int64_t>(file, "tokens", h5::Type::i64, {6}, {10, 20, 21, 30, 31, 32});
    test::put<std::int32_t>(file, "tokens_offsets", h5::Type::i32, {offsets.size()}, offsets);
    test::put<std::uint8_t>(file, "image", h5::Type::u8, {4, 2}, {0, 1, 2, 3, 4, 5, 6, 255});
    test::put<float>(file, "length", h5::Type::f32, {lengths.size()}, lengths);
    test::put<std::uint8_t>(file, "group", h5::Type::u8, {4}, {2, 0, 1, 2});
    file.close();
}

DatasetOptions all_of(std::filesystem::path const& path) {
    return {path.string(), "tokens, image", "length, group"};
}

} // namespace

TEST_CASE("a batch carries every field, ragged ones with offsets") {
    test::ScratchDir const scratch;
    write_fields(scratch / "a.h5", {0, 0, 1, 3, 6});
    write_fields(scratch / "b.h5", {0, 1, 1, 1, 6});
    Dataset const set({(scratch / "*.h5").string(), "tokens, image", "length, group"});
    CHECK(set.samples() == 8);
    CHECK_FALSE(set.has_labels());
    CHECK(set.inputs()[0].ragged);
    CHECK(set.inputs()[0].whole);
    CHECK(set.inputs()[1].shape == h5::Shape{2});
    Batch batch;
    Scratch buffers;
    batch.indices = {3, 0, 7, 1, 3};
    set.read(batch, buffers);
    REQUIRE(batch.fields.size() == 4);
    CHECK(batch.fields[0].offsets == std::vector<std::int64_t>{0, 3, 3, 8, 9, 12});
    CHECK(batch.fields[0].wholes ==
          std::vector<std::int64_t>{30, 31, 32, 20, 21, 30, 31, 32, 10, 30, 31, 32});
    CHECK(batch.fields[1].reals == std::vector<float>{6 / 255.0F, 1, 0, 1 / 255.0F, 6 / 255.0F, 1,
                                                      2 / 255.0F, 3 / 255.0F, 6 / 255.0F, 1});
    CHECK(batch.fields[2].reals == std::vector<float>{8, 0.5F, 8, 1.5F, 8});
    CHECK(batch.fields[3].wholes == std::vector<std::int64_t>{2, 2, 2, 0, 2});
    CHECK(batch.first_target == 2);
}

TEST_CASE("the lengths of ragged samples are known without reading them") {
    test::ScratchDir const scratch;
    write_fields(scratch / "a.h5", {0, 0, 1, 3, 6});
    write_fields(scratch / "b.h5", {0, 1, 1, 1, 6});
    auto const files = (scratch / "*.h5").string();
    CHECK(ragged_lengths(files, "tokens") == std::vector<std::int64_t>{0, 1, 2, 3, 1, 0, 0, 5});
    auto const error = test::error_of([&] { ragged_lengths(files, "image"); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "the same length"));
}

TEST_CASE("offsets that lead elsewhere are an error that names the sample") {
    test::ScratchDir const scratch;
    for (std::vector<std::int32_t> const& offsets :
         {std::vector<std::int32_t>{0, 0, 1, 7, 6}, {0, 0, 4, 3, 6}, {0, 0, -1, 3, 6}}) {
        write_fields(scratch / "a.h5", offsets);
        Dataset const set(all_of(scratch / "a.h5"));
        auto const error = test::error_of([&] {
            Batch batch;
            Scratch buffers;
            batch.indices = {0, 1, 2, 3};
            set.read(batch, buffers);
        });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, offsets[2] < 0 ? "sample 1" : "sample 2"));
    }
}

TEST_CASE("offsets that leave rows out are refused before a sample is read") {
    test::ScratchDir const scratch;
    for (std::vector<std::int32_t> const& offsets : {std::vector<std::int32_t>{0, 0, 1, 3, 7},
                                                     {0, 0, 1, 3, 5},
                                                     {-1, 0, 1, 3, 6},
                                                     {1, 1, 1, 3, 6}}) {
        write_fields(scratch / "a.h5", offsets);
        auto const error = test::error_of([&] { Dataset(all_of(scratch / "a.h5")); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "must go from 0 to 6"));
    }
}

TEST_CASE("fields that do not have a value for every sample are refused") {
    test::ScratchDir const scratch;
    write_fields(scratch / "a.h5", {0, 0, 1, 3, 6}, {1, 2, 3});
    auto const error = test::error_of([&] { Dataset(all_of(scratch / "a.h5")); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "4 samples in dataset tokens, but 3 in dataset length"));
}

TEST_CASE("values that are not finite are counted and named") {
    test::ScratchDir const scratch;
    auto const nan = std::numeric_limits<float>::quiet_NaN();
    write_fields(scratch / "a.h5", {0, 0, 1, 3, 6}, {1, 2, nan, -INFINITY});
    auto const found = look_through(all_of(scratch / "a.h5"));
    REQUIRE(found.size() == 1);
    CHECK(found[0].dataset == "length");
    CHECK(found[0].count == 2);
    CHECK(found[0].samples == 2);
    CHECK(found[0].first == 2);
    write_fields(scratch / "a.h5", {0, 0, 1, 3, 6});
    CHECK(look_through(all_of(scratch / "a.h5")).empty());
}

TEST_CASE("other fields make another fingerprint") {
    test::ScratchDir const scratch;
    write_fields(scratch / "a.h5", {0, 0, 1, 3, 6});
    Dataset const all(all_of(scratch / "a.h5"));
    Dataset const fewer({(scratch / "a.h5").string(), "tokens", "length, group"});
    CHECK(all.fingerprint() != fewer.fingerprint());
}

TEST_CASE("a mask is cut as the tokens that follow are") {
    test::ScratchDir const scratch;
    auto const path = scratch / "tokens.h5";
    auto file = h5::File::create(path);
    test::put<std::uint16_t>(file, "inputs", h5::Type::u16, {10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    test::put<std::uint8_t>(file, "learnt", h5::Type::u8, {10}, {1, 0, 1, 1, 0, 0, 1, 1, 1, 0});
    test::put<std::uint8_t>(file, "short", h5::Type::u8, {9}, {1, 1, 1, 1, 1, 1, 1, 1, 1});
    test::put<std::uint8_t>(file, "other", h5::Type::u8, {10}, {1, 1, 1, 1, 1, 1, 2, 1, 1, 1});
    test::put<std::uint8_t>(file, "unread", h5::Type::u8, {10}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 3});
    test::put<float>(file, "real", h5::Type::f32, {10}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    test::put<std::uint8_t>(file, "token_bytes", h5::Type::u8, {10}, std::vector<std::uint8_t>(10));
    file.close();
    Dataset const set({.files = path.string(), .sequence = 4, .mask = "learnt"});
    REQUIRE(set.samples() == 2);
    CHECK(set.targets()[0].vocabulary == 10);
    CHECK(set.targets()[1].vocabulary == 0);
    CHECK(set.remarks().empty());
    Batch batch;
    Scratch buffers;
    batch.indices = {1, 0};
    set.read(batch, buffers);
    REQUIRE(batch.fields.size() == 3);
    CHECK(batch.fields[1].wholes == std::vector<std::int64_t>{5, 6, 7, 8, 1, 2, 3, 4});
    CHECK(batch.fields[2].wholes == std::vector<std::int64_t>{0, 1, 1, 1, 0, 1, 1, 0});

    Dataset const unread({.files = path.string(), .sequence = 4, .mask = "unread"});
    Dataset const wrong({.files = path.string(), .sequence = 4, .mask = "other"});
    batch.indices = {0};
    CHECK_NOTHROW(wrong.read(batch, buffers));
    batch.indices = {0, 1};
    auto const refused = test::error_of([&] { wrong.read(batch, buffers); });
    CHECK(refused.code() == ExitCode::data);
    CHECK(test::says(refused, "value 2 of sample 1 in dataset other of " + path.string()));
    CHECK(test::says(refused, "only 1 (the token is learnt) and 0"));

    // The first token is no target, and the last is in no sample.
    CHECK_NOTHROW(unread.read(batch, buffers));
    CHECK_NOTHROW(look_through_mask({.files = path.string(), .sequence = 4, .mask = "learnt"}));
    CHECK_NOTHROW(look_through_mask({.files = path.string(), .sequence = 4}));
    auto const seen = test::error_of(
        [&] { look_through_mask({.files = path.string(), .sequence = 4, .mask = "unread"}); });
    CHECK(seen.code() == ExitCode::data);
    CHECK(test::says(seen, "value 3 at index 9 in dataset unread of " + path.string()));

    Dataset const without({.files = path.string(), .sequence = 4});
    CHECK(without.targets().size() == 1);
    CHECK(without.remarks().size() == 1);
    for (auto const* const name : {"short", "real", "missing"}) {
        CHECK(test::error_of([&] {
                  Dataset({.files = path.string(), .sequence = 4, .mask = name});
              }).code() == ExitCode::data);
    }
    auto const error = test::error_of([&] { Dataset({.files = path.string(), .mask = "learnt"}); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "without data.sequence"));
}
