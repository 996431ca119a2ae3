#include "data/verify.hpp"
#include "h5/element_type.hpp"
#include "import/hdf5_source.hpp"
#include "lockstep/data/dataset.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "number_source.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

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
    CHECK(test::says(test::error_of([&] { hdf5_source(options); }),
                     "dataset text/tokens has 4 samples, but dataset text/tokens_offsets has 5"));
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
    options.weights = "sizes"; // two per sample, and below zero
    CHECK(test::error_of([&] { hdf5_source(options); }).code() == ExitCode::data);
}

namespace {

/// A file of one input a sample and labels; mean and std where they are given.
template <class Value>
void write_inputs(std::filesystem::path const& path, h5::Type type,
                  std::vector<Value> const& inputs, std::vector<double> const& mean = {},
                  std::vector<double> const& std = {}) {
    auto file = h5::File::create(path);
    file.create_dataset("inputs", type, {inputs.size(), 1});
    file.write("inputs", type, inputs);
    file.create_dataset("targets", h5::Type::i64, {inputs.size()});
    file.write("targets", h5::Type::i64, std::vector<std::int64_t>(inputs.size(), 0));
    if (!mean.empty()) {
        file.set_attribute("/", "mean", mean);
        file.set_attribute("/", "std", std);
    }
    file.close();
}

std::vector<float> inputs_of(std::filesystem::path const& path) {
    Dataset const set({.files = path.string()});
    std::vector<std::int64_t> indices(static_cast<std::size_t>(set.samples()));
    std::iota(indices.begin(), indices.end(), 0);
    std::vector<float> values(indices.size());
    set.read_inputs(indices, values);
    return values;
}

} // namespace

TEST_CASE("samples that leave u8, or come to it, are handed out as before") {
    test::ScratchDir const scratch;
    auto const in = scratch / "theirs.h5";
    auto const out = scratch / "ours.h5";
    write_inputs<std::uint8_t>(in, h5::Type::u8, {0, 7, 255}, {0.5}, {0.25});
    auto const bytes = inputs_of(in);
    CHECK(bytes[2] == Approx((1 - 0.5) / 0.25));
    for (std::string const type : {"f32", "i16", "f64", "u8"}) {
        CAPTURE(type);
        test::import_to(out, *hdf5_source({.source = in, .type = type}));
        auto const now = inputs_of(out);
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            CHECK(now[i] == Approx(bytes[i]).epsilon(1e-5));
        }
    }
    write_inputs<float>(in, h5::Type::f32, {0, 7, 255}, {100}, {60});
    auto const reals = inputs_of(in);
    test::import_to(out, *hdf5_source({.source = in, .type = "u8"}));
    auto const now = inputs_of(out);
    for (std::size_t i = 0; i < reals.size(); ++i) {
        CHECK(now[i] == Approx(reals[i]).epsilon(1e-5));
    }
}

TEST_CASE("a value that the type asked for cannot hold is named") {
    test::ScratchDir const scratch;
    auto const in = scratch / "theirs.h5";
    auto const out = scratch / "ours.h5";
    auto const nan = std::numeric_limits<double>::quiet_NaN();
    auto const infinity = std::numeric_limits<double>::infinity();
    auto const refused = [&](std::string const& type) {
        auto const error = test::error_of(
            [&] { test::import_to(out, *hdf5_source({.source = in, .type = type})); });
        CAPTURE(type, error.what());
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "dataset inputs of " + in.string()));
        CHECK(test::says(error, "one of its values does not fit " + type));
        CHECK(test::says(error, "in sample 1"));
        CHECK_FALSE(std::filesystem::exists(out));
    };
    auto const taken = [&](std::string const& type) {
        CAPTURE(type);
        test::import_to(out, *hdf5_source({.source = in, .type = type}));
        CHECK(inputs_of(out) == inputs_of(in));
        std::filesystem::remove(out);
    };
    for (double const wrong : {0.5, nan, infinity, -infinity, -1e-300, 1e20, 1e300}) {
        for (auto const source : {h5::Type::f64, h5::Type::f32}) {
            if (source == h5::Type::f32 && std::isfinite(wrong) &&
                (std::abs(wrong) > 1e30 || std::abs(wrong) < 1e-30)) {
                continue; // f32 holds an infinity or 0 instead
            }
            if (source == h5::Type::f64) {
                write_inputs<double>(in, source, {1, wrong, 2});
            } else {
                write_inputs<float>(in, source, {1, static_cast<float>(wrong), 2});
            }
            for (std::string const type : {"u8", "i16", "i32"}) {
                refused(type);
            }
        }
    }
    write_inputs<double>(in, h5::Type::f64, {1, 1e300, 2});
    refused("f32");
    write_inputs<double>(in, h5::Type::f64, {1, 1e-300, 2});
    refused("f32");
    write_inputs<std::int16_t>(in, h5::Type::i16, {1, -1, 2});
    refused("u8");
    taken("f32");
    write_inputs<std::uint32_t>(in, h5::Type::u32, {1, 4294967295U, 2});
    refused("i32");
    refused("f32");
    taken("f64");
    write_inputs<std::int32_t>(in, h5::Type::i32, {1, 16777217, 2});
    refused("f32");
    write_inputs<double>(in, h5::Type::f64, {255, 0, 3});
    taken("i16");
    taken("i32");
    write_inputs<double>(in, h5::Type::f64, {0.1, infinity, 3}); // rounded, as it is read
    taken("f32");
    write_inputs<std::uint16_t>(in, h5::Type::f16, {0x3c00, 0x3800, 0x4000}); // 1, 0.5, 2
    refused("u8");
    taken("f32");
    write_inputs<std::uint16_t>(in, h5::Type::f16, {0x3c00, 0x7e00, 0x4000}); // NaN
    refused("i32");
}

TEST_CASE("a label above 2^63 is told as it is, and the first that is wrong") {
    test::ScratchDir const scratch;
    auto const path = scratch / "theirs.h5";
    {
        auto file = h5::File::create(path);
        file.create_dataset("inputs", h5::Type::f32, {3, 1});
        file.write("inputs", h5::Type::f32, std::vector<float>(3));
        file.create_dataset("targets", h5::Type::u64, {3});
        file.write("targets", h5::Type::u64,
                   std::vector<std::uint64_t>{0, 9223372036854775808U, 9223372036854775809U});
        file.close();
    }
    CHECK(test::says(test::error_of([&] {
                         data::Dataset({.files = path.string(), .labels = data::Labels::classes});
                     }),
                     "label 9223372036854775808 of sample 1"));
    CHECK(test::says(test::error_of([&] { hdf5_source({.source = path, .classes = {"a"}}); }),
                     "label 9223372036854775808 of sample 1"));
    auto const values = hdf5_source({.source = path}); // nothing says that they are classes
    CHECK(values->form().class_names.empty());
    CHECK(values->form().fields.at(1).type == h5::Type::u64);
    CHECK(values->remarks().at(0).find("9223372036854775808 in sample 1") != std::string::npos);
}
