#include "lockstep/data/dataset.hpp"
#include "lockstep/data/inspect.hpp"

#include <numeric>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "number_source.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using namespace lockstep::data;

TEST_CASE("an HDF5 file is converted, dealt to shards, and read back as it was") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "theirs.h5", 50);
    auto const source = hdf5_source({.source = scratch / "theirs.h5", .type = "f64"});
    auto const report = test::import_to(scratch / "ours.h5", *source, {.shard_samples = 20});
    REQUIRE(report.files.size() == 3);
    CHECK(report.files[2].path == scratch / "ours-00002-of-00003.h5");
    CHECK(report.files[2].samples == 10);
    for (auto const& file : report.files) {
        CHECK(verify(file.path).empty());
    }
    auto const file = h5::File::open(report.files[1].path);
    CHECK(file.info("inputs").type == h5::Type::f64);
    std::vector<double> values(20 * 6);
    file.read("inputs", h5::Type::f64, values);
    CHECK(values[7] == 22); // sample 21 begins with 21
    CHECK(test::error_of([&] {
              hdf5_source({.source = scratch / "theirs.h5", .type = "f16"});
          }).code() == ExitCode::usage);
}

TEST_CASE("compressed files hold the same, in less room") {
    test::ScratchDir const scratch;
    test::NumberSource const source(2000);
    test::import_to(scratch / "plain.h5", source);
    auto const bytes = test::import_to(scratch / "small.h5", source, {.deflate = 4}).files[0].bytes;
    CHECK(bytes == std::filesystem::file_size(scratch / "small.h5"));
    CHECK(bytes < std::filesystem::file_size(scratch / "plain.h5") / 2);
    auto const plain = h5::File::open(scratch / "plain.h5");
    auto const small = h5::File::open(scratch / "small.h5");
    CHECK_FALSE(small.info("inputs").contiguous);
    for (std::string const name : {"inputs", "targets", "steps", "steps_offsets"}) {
        auto const shape = plain.info(name).shape;
        REQUIRE(small.info(name).shape == shape);
        std::vector<double> a(h5::elements(shape));
        std::vector<double> b(a.size());
        plain.read(name, h5::Type::f64, a);
        small.read(name, h5::Type::f64, b);
        CHECK(a == b);
    }
    CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 2);
}

TEST_CASE("several inputs and targets, ragged ones and weights come along, in any storage") {
    test::ScratchDir const scratch;
    std::vector<std::int64_t> const tokens{7, 8, 9, 10, 11, 12, 13};
    std::vector<std::int64_t> const offsets{0, 3, 3, 6, 7};
    std::vector<std::int16_t> const sizes{1, -2, 3, -4, 5, -6, 7, -8};
    std::vector<float> const prices{0.5F, 1.5F, 2.5F, 3.5F};
    std::vector<double> const weights{1, 0, 2, 0.25};
    {
        auto file = h5::File::create(scratch / "theirs.h5");
        auto const put = [&](std::string const& name, h5::Type type, h5::Shape const& shape,
                             auto const& values) {
            file.create_dataset(name, type, shape);
            file.write(name, type, values);
        };
        put("text/tokens", h5::Type::i64, {7}, tokens);
        put("text/tokens_offsets", h5::Type::i64, {5}, offsets);
        put("sizes", h5::Type::i16, {4, 2}, sizes);
        put("price", h5::Type::f32, {4}, prices);
        put("share", h5::Type::f64, {4}, weights);
        file.close();
    }
    Hdf5Import options{.source = scratch / "theirs.h5",
                       .inputs = {"text/tokens", "sizes"},
                       .targets = {"price"},
                       .weights = "share"};
    for (int const deflate : {0, 4}) {
        auto const out = scratch / ("ours" + std::to_string(deflate) + ".h5");
        test::import_to(out, *hdf5_source(options), {.deflate = deflate});
        CHECK(has_checksums(out) == (deflate == 0));
        CHECK((deflate > 0 || verify(out).empty()));
        Dataset const set(
            {.files = out.string(), .inputs = "text/tokens, sizes", .weights = "share"});
        CHECK(set.samples() == 4);
        CHECK(set.inputs()[0].whole);
        CHECK(set.targets()[0].type == h5::Type::f32);
        Batch batch;
        batch.indices = {3, 0, 1};
        Scratch buffers;
        set.read(batch, buffers);
        CHECK(batch.fields[0].wholes == std::vector<std::int64_t>{13, 7, 8, 9});
        CHECK(batch.fields[0].offsets == std::vector<std::int64_t>{0, 1, 4, 4});
        CHECK(batch.fields[1].reals == std::vector<float>{7, -8, 1, -2, 3, -4});
        CHECK(batch.fields[2].reals == std::vector<float>{3.5F, 0.5F, 1.5F});
        auto const file = h5::File::open(out);
        std::vector<double> kept(4);
        file.read("share", h5::Type::f64, kept);
        CHECK(kept == weights);
    }

    options.targets = {"text/tokens_offsets"}; // five of them
    CHECK(test::says(test::error_of([&] { hdf5_source(options); }), "4 samples of text/tokens"));
    options.targets = {"price"};
    options.weights = "price"; // which is the target
    CHECK(test::error_of([&] { hdf5_source(options); }).code() == ExitCode::usage);
    options.weights = "";
    options.targets = {};
    CHECK(test::error_of([&] { hdf5_source(options); }).code() == ExitCode::usage);
    options.targets = {"price"};
    options.inputs = {"sizes", "sizes"};
    CHECK(test::error_of([&] { hdf5_source(options); }).code() == ExitCode::usage);
    options.inputs = {"text/tokens"};
    options.weights = "sizes"; // two a sample, and below zero
    CHECK(test::error_of([&] { hdf5_source(options); }).code() == ExitCode::data);
}
