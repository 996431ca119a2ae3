// Files that other programs made: our own writers make neither these layouts nor these types.

#include "base/text.hpp"
#include "data/convert.hpp"
#include "data/inspect.hpp"
#include "data/look_through.hpp"
#include "data/verify.hpp"
#include "h5/element_type.hpp"
#include "h5/handle.hpp"
#include "import/hdf5_source.hpp"
#include "lockstep/data/dataset.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

std::vector<float> all_inputs(Dataset const& set) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(set.samples()));
    std::iota(indices.begin(), indices.end(), 0);
    std::vector<float> values(indices.size() * h5::elements(set.sample_shape()));
    set.read_inputs(indices, values);
    return values;
}

/// 100 samples of [3, 2], value i at place i, in chunks of 16 samples, deflated.
void write_compressed(std::filesystem::path const& path) {
    std::vector<std::int32_t> values(600);
    std::iota(values.begin(), values.end(), 0);
    std::vector<std::int64_t> labels(100);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = static_cast<std::int64_t>(i % 5);
    }
    std::array<hsize_t, 3> const extents{100, 3, 2};
    std::array<hsize_t, 3> const chunk{16, 3, 2};
    hid_t const file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t const space = H5Screate_simple(3, extents.data(), nullptr);
    hid_t const creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 3, chunk.data());
    H5Pset_deflate(creation, 4);
    hid_t const inputs =
        H5Dcreate2(file, "x", H5T_STD_I32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Dwrite(inputs, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    hid_t const label_space = H5Screate_simple(1, extents.data(), nullptr);
    hid_t const targets =
        H5Dcreate2(file, "y", H5T_STD_I64LE, label_space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(targets, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data());
    H5Dclose(targets);
    H5Sclose(label_space);
    H5Dclose(inputs);
    H5Pclose(creation);
    H5Sclose(space);
    H5Fclose(file);
}

/// Two samples of [2, 3] with a mean and a deviation for each of the two channels.
template <class Stored>
void write_channels(std::filesystem::path const& path, h5::Type type,
                    std::vector<Stored> const& values, std::vector<double> const& mean,
                    std::vector<double> const& std) {
    std::vector<std::int64_t> const labels{1, 0};
    auto file = h5::File::create(path);
    file.create_dataset("inputs", type, {2, 2, 3});
    file.write("inputs", type, values);
    file.create_dataset("targets", h5::Type::i64, {2});
    file.write("targets", h5::Type::i64, labels);
    file.set_attribute("/", "mean", mean);
    file.set_attribute("/", "std", std);
    file.close();
}

} // namespace

TEST_CASE("a compressed file is read where it is") {
    test::ScratchDir const scratch;
    write_compressed(scratch / "theirs.h5");
    Dataset const set({.files = (scratch / "theirs.h5").string(), .inputs = "x", .targets = "y"});
    CHECK(set.class_counts() == std::vector<std::int64_t>(5, 20));
    auto const values = all_inputs(set);
    for (std::size_t i = 0; i < values.size(); ++i) {
        CHECK(values[i] == static_cast<float>(i));
    }
}

TEST_CASE("a dataset that is not there is named, with those that are") {
    test::ScratchDir const scratch;
    write_compressed(scratch / "theirs.h5");
    auto const error =
        test::error_of([&] { Dataset({.files = (scratch / "theirs.h5").string()}); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "no dataset named inputs"));
    CHECK(test::says(error, "x"));
    CHECK(test::error_of([&] {
              test::import_to(scratch / "out.h5", *hdf5_source({.source = scratch / "theirs.h5",
                                                                .inputs = {"x"},
                                                                .targets = {"z"}}));
          }).code() == ExitCode::data);
    CHECK_FALSE(std::filesystem::exists(scratch / "out.h5"));
}

TEST_CASE("each channel is normalised with its own mean and deviation") {
    test::ScratchDir const scratch;
    std::vector<double> const mean{0.1, 0.2};
    std::vector<double> const std{0.3, 0.7};
    auto const expected = [&](float value, std::size_t at) {
        auto const channel = at / 3 % 2;
        return (value - static_cast<float>(mean[channel])) / static_cast<float>(std[channel]);
    };

    std::vector<std::uint8_t> const bytes{0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255};
    write_channels(scratch / "u8.h5", h5::Type::u8, bytes, mean, std);
    auto const from_bytes = all_inputs(Dataset({.files = (scratch / "u8.h5").string()}));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        CHECK(from_bytes[i] == expected(static_cast<float>(bytes[i]) / 255.0F, i));
    }

    // Other types are not scaled by 255.
    std::vector<std::int16_t> const shorts{-7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 30000};
    write_channels(scratch / "i16.h5", h5::Type::i16, shorts, mean, std);
    auto const from_shorts = all_inputs(Dataset({.files = (scratch / "i16.h5").string()}));
    std::vector<double> const reals{-0.5, 1e-3, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1e6};
    write_channels(scratch / "f64.h5", h5::Type::f64, reals, mean, std);
    auto const from_reals = all_inputs(Dataset({.files = (scratch / "f64.h5").string()}));
    for (std::size_t i = 0; i < shorts.size(); ++i) {
        CHECK(from_shorts[i] == expected(static_cast<float>(shorts[i]), i));
        auto const channel = i / 3 % 2; // what float32 does not hold is rounded at the end
        CHECK(from_reals[i] == static_cast<float>((reals[i] - mean[channel]) / std[channel]));
    }
}

TEST_CASE("a mean without its deviation, or a deviation of zero, is refused") {
    test::ScratchDir const scratch;
    std::vector<float> const values(12, 1.0F);
    auto const code_with = [&](std::vector<double> const& mean, std::vector<double> const& std) {
        write_channels(scratch / "set.h5", h5::Type::f32, values, mean, std);
        return test::error_of([&] { Dataset({.files = (scratch / "set.h5").string()}); }).code();
    };
    CHECK(code_with({0.5}, {0.5, 0.5}) == ExitCode::data);
    CHECK(code_with({0.5}, {0}) == ExitCode::data);
    CHECK(code_with({0.5, 0.5, 0.5, 0.5}, {1, 1, 1, 1}) == ExitCode::data);
    write_channels(scratch / "set.h5", h5::Type::f32, values, {0.5}, {0.5});
    {
        auto const file = H5Fopen((scratch / "set.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        H5Adelete(file, "std");
        auto const text = H5Tcopy(H5T_C_S1);
        auto const space = H5Screate(H5S_SCALAR);
        auto const std = H5Acreate2(file, "std", text, space, H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(std, text, "3");
        H5Aclose(std);
        H5Sclose(space);
        H5Tclose(text);
        H5Fclose(file);
    }
    CHECK(test::says(test::error_of([&] { Dataset({.files = (scratch / "set.h5").string()}); }),
                     "attribute std is not a number"));
}

TEST_CASE("an import refuses a mean and std that float32 does not hold, as training does") {
    test::ScratchDir const scratch;
    auto const path = scratch / "set.h5";
    auto const import_as = [&](h5::Type type, std::string const& as, double mean, double std) {
        with_type(type, [&](auto stored) {
            write_channels(path, type, std::vector<decltype(stored)>(12, 1), {mean}, {std});
        });
        auto const error = test::error_of([&] { hdf5_source({.source = path, .type = as}); });
        return test::says(error, "out of the range of float32");
    };
    for (auto const& [mean, std] : {std::pair(1e39, 1.0), {0.5, 1e39}, {0.5, 1e-42}}) {
        CAPTURE(mean, std);
        CHECK(import_as(h5::Type::f32, "", mean, std));
        CHECK(import_as(h5::Type::f64, "f32", mean, std));
        write_channels(path, h5::Type::f64, std::vector<double>(12, 1), {mean}, {std});
        CHECK_NOTHROW(hdf5_source({.source = path}));
    }
}

namespace {

/// One sample of 2 x 2 places, with what others say of it.
void write_places(std::filesystem::path const& path, std::vector<float> const& places,
                  std::vector<std::string> const& classes) {
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::f32, {places.size() / 4, 1});
    file.write("inputs", h5::Type::f32, std::vector<float>(places.size() / 4));
    file.create_dataset("targets", h5::Type::f32, {places.size() / 4, 2, 2});
    file.write("targets", h5::Type::f32, places);
    if (!classes.empty()) {
        file.set_attribute("/", "classes", classes);
    }
    file.close();
}

} // namespace

TEST_CASE("names of classes are refused as at an import, and the file is named") {
    test::ScratchDir const scratch;
    auto const path = scratch / "set.h5";
    for (auto const& [names, why] : {std::pair{std::vector<std::string>{"a", "a"}, "has this name"},
                                     {{"a\nb", "c"}, "a line break"},
                                     {{"a", "\x1b[31md"}, "a line break"},
                                     {{"a", ""}, "its name is empty"},
                                     {{"a", "\xff"}, "UTF-8"}}) {
        CAPTURE(why);
        write_places(path, {0, 1, 0, 1}, names);
        auto const error = test::error_of([&] { Dataset({.files = path.string()}); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, why));
        CHECK(test::says(error, path.string()));
        CHECK_FALSE(test::says(error, "\n")); // one line of a log
    }
}

TEST_CASE("a place's class that is none is named as it is stored") {
    test::ScratchDir const scratch;
    auto const path = scratch / "set.h5";
    for (auto const& [value, text] : {std::pair{1.5F, "label 1.5"},
                                      {std::numeric_limits<float>::quiet_NaN(), "label nan"},
                                      {1e20F, "label 1e+20"},
                                      {255.0F, "label 255"},
                                      {2.0F, "label 2"},
                                      {-1.0F, "label -1"}}) {
        CAPTURE(text);
        write_places(path, {0, 1, 0, 1, 1, 1, value, 0}, {"a", "b"});
        Dataset set({.files = path.string()});
        Batch batch;
        Scratch buffers;
        batch.indices = {0, 1};
        set.read(batch, buffers); // nothing is known of them yet
        set.expect_classes(2);
        auto const error = test::error_of([&] { set.read(batch, buffers); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, std::string(text) + " of sample 1 in dataset targets of " +
                                    path.string()));
        if (value == 255) { // which masks have where there is no class
            CHECK(look_through({path.string()}).empty());
        } else {
            CHECK(test::says(test::error_of([&] { look_through({path.string()}); }), text));
        }
        batch.indices = {0};
        set.read(batch, buffers);
    }
    write_places(path, {0, 1, 0, 1, 1, 1, 1.5F, 0}, {}); // real values
    CHECK(look_through({path.string()}).empty());
    write_places(path, {0, 1, 0, 1, 1, 1, 1, 0}, {"a", "b"});
    CHECK(look_through({path.string()}).empty());
}

TEST_CASE("what a file says of its values and is not applied is told, and what was never written") {
    test::ScratchDir const scratch;
    auto const path = scratch / "set.h5";
    write_places(path, {0, 1, 0, 1}, {});
    CHECK(warnings_of({path.string()}).empty());
    auto const attribute = [&](std::string const& name, double value) {
        auto const file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        auto const space = H5Screate(H5S_SCALAR);
        auto const made = H5Acreate_by_name(file, "inputs", name.c_str(), H5T_IEEE_F64LE, space,
                                            H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(made, H5T_NATIVE_DOUBLE, &value);
        H5Aclose(made);
        H5Sclose(space);
        H5Fclose(file);
    };
    attribute("_FillValue", std::numeric_limits<double>::quiet_NaN());
    attribute("add_offset", 0);
    CHECK(warnings_of({path.string()}).empty());
    attribute("scale_factor", 0.5);
    attribute("missing_value", -999);
    auto const told = warnings_of({path.string()});
    REQUIRE(told.size() == 1);
    CHECK(told[0] == "warning: attributes in " + path.string() +
                         " are not applied (dataset inputs has scale_factor = 0.5, missing_value = "
                         "-999); values are used as they are stored");
    {
        auto file = h5::File::create(path);
        file.create_dataset("inputs", h5::Type::f32, {4, 1}, {.chunk_rows = 2});
        file.create_dataset("targets", h5::Type::i64, {4});
        file.write("targets", h5::Type::i64, std::vector<std::int64_t>(4));
        file.close();
    }
    auto const unwritten = warnings_of({path.string()});
    REQUIRE(unwritten.size() == 1);
    CHECK(unwritten[0].find("values of dataset inputs of " + path.string() +
                            " were never written") != std::string::npos);
}

TEST_CASE("a compressed file is imported value by value") {
    test::ScratchDir const scratch;
    write_compressed(scratch / "theirs.h5");
    auto const report = test::import_to(
        scratch / "ours.h5",
        *hdf5_source({.source = scratch / "theirs.h5", .inputs = {"x"}, .targets = {"y"}}));
    CHECK(report.files.at(0).samples == 100);
    CHECK(verify(scratch / "ours.h5").empty());
    Dataset const set({.files = (scratch / "ours.h5").string()});
    CHECK(set.sample_shape() == h5::Shape{3, 2});
    CHECK(set.classes() == 5);
    CHECK(set.class_counts() == std::vector<std::int64_t>(5, 20));
    auto const values = all_inputs(set);
    REQUIRE(values.size() == 600);
    for (std::size_t i = 0; i < values.size(); ++i) {
        CHECK(values[i] == static_cast<float>(i));
    }
}

TEST_CASE("a dataset says which samples of others' files a split keeps together") {
    test::ScratchDir const scratch;
    std::vector<float> values(100);
    std::iota(values.begin(), values.end(), 0.0F);
    std::vector<std::int64_t> labels(100);
    std::vector<std::int32_t> speakers(100);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = static_cast<std::int64_t>(i % 5);
        speakers[i] = static_cast<std::int32_t>(i / 10 * 7);
    }
    auto file = h5::File::create(scratch / "theirs.h5");
    file.create_dataset("x", h5::Type::f32, {100, 1});
    file.write("x", h5::Type::f32, values);
    file.create_dataset("y", h5::Type::i64, {100});
    file.write("y", h5::Type::i64, labels);
    file.create_dataset("speaker", h5::Type::i32, {100});
    file.write("speaker", h5::Type::i32, speakers);
    file.close();
    auto const source_by = [&](std::string const& group) {
        return hdf5_source({.source = scratch / "theirs.h5",
                            .inputs = {"x"},
                            .targets = {"y"},
                            .split_by = group});
    };
    auto const report = test::import_to(scratch / "out", *source_by("speaker"),
                                        {.split = {.shares = {0.6, 0, 0.4}, .by_group = true}});
    REQUIRE(report.sets.size() == 2);
    CHECK(report.sets[0].groups == 6);
    CHECK(report.sets[1].groups == 4);
    std::map<int, int> samples;
    for (float const value : all_inputs(Dataset({.files = (scratch / "out/train.h5").string()}))) {
        ++samples[static_cast<int>(value) / 10];
    }
    CHECK(samples.size() == 6);
    CHECK(std::ranges::all_of(samples, [](auto const& each) { return each.second == 10; }));
    CHECK(test::says(test::error_of([&] { source_by("x"); }), "one whole number per sample"));
}

namespace {

/// Inputs f32 [4, 2] from 0 to 255, and masks u8 [4, 3].
void write_masks(std::filesystem::path const& path, std::vector<std::uint8_t> const& masks,
                 std::vector<std::string> const& names = {}) {
    auto file = h5::File::create(path);
    file.create_dataset("inputs", h5::Type::f32, {4, 2});
    file.write("inputs", h5::Type::f32, std::vector<float>{0, 255, 128, 3, 7, 90, 200, 1});
    file.create_dataset("targets", h5::Type::u8, {4, 3});
    file.write("targets", h5::Type::u8, masks);
    if (!names.empty()) {
        file.set_attribute("/", "classes", names);
    }
    file.close();
}

std::string remarks_of(Hdf5Import const& options) {
    std::string all;
    for (auto const& line : hdf5_source(options)->remarks()) {
        all += line + "\n";
    }
    return all;
}

} // namespace

TEST_CASE("an import names the classes of masks, and those that a file names stay") {
    test::ScratchDir const scratch;
    std::vector<std::uint8_t> const masks{0, 1, 0, 1, 1, 255, 0, 0, 0, 1, 0, 1};
    Hdf5Import options{.source = scratch / "theirs.h5", .classes = {"sky", "sea"}};
    auto const import = [&] { test::import_to(scratch / "ours.h5", *hdf5_source(options)); };
    write_masks(options.source, masks);
    import();
    CHECK(describe(scratch / "ours.h5").class_names == options.classes);
    CHECK(look_through({.files = (scratch / "ours.h5").string()}).empty());
    options.source = scratch / "ours.h5";
    options.classes.clear();
    test::import_to(scratch / "again.h5", *hdf5_source(options));
    CHECK(describe(scratch / "again.h5").class_names == std::vector<std::string>{"sky", "sea"});
    options = {.source = scratch / "named.h5", .classes = {"b", "a"}};
    write_masks(options.source, masks, {"a", "b"});
    CHECK(test::says(test::error_of(import), "in another order: a, b"));
    options.classes = {"a", "b", "c", "d"};
    import();
    CHECK(describe(scratch / "ours.h5").class_names.size() == 4);
    auto wrong = masks;
    wrong[4] = 2;
    write_masks(options.source, wrong);
    options.classes = {"a", "b"};
    auto const error = test::error_of(import);
    CHECK(error.code() == ExitCode::data);
    CHECK(
        test::says(error, "sample 1, dataset targets: it has the class 2, but --classes names 2"));
    options.classes = {"a", "b", "c"}; // a value for each of the classes
    import();
    options = {.source = scratch / "named.h5",
               .inputs = {"targets"},
               .targets = {"inputs"},
               .classes = {"a", "b", "c"}};
    CHECK(test::says(test::error_of(import), "dataset inputs has no classes: it holds f32"));
}

TEST_CASE("inputs that are far from 0 and 1 are told, and get a mean and std") {
    test::ScratchDir const scratch;
    Hdf5Import options{.source = scratch / "theirs.h5"};
    write_masks(options.source, std::vector<std::uint8_t>(12, 1));
    auto const told = remarks_of(options);
    CAPTURE(told);
    CHECK(told.find("warning: training takes dataset inputs as it is") != told.npos);
    CHECK(told.find("mean 85.5") != told.npos);
    CHECK(told.find("--type u8 if these are pixels") != told.npos);
    options.type = "u8";
    CHECK(remarks_of(options).empty());
    options.mean = {0.25, 0.5};
    options.std = {2, 4};
    options.type = "";
    CHECK(remarks_of(options).empty());
    test::import_to(scratch / "ours.h5", *hdf5_source(options));
    auto const info = describe(scratch / "ours.h5");
    CHECK(info.mean == options.mean);
    CHECK(info.std == options.std);
    auto const code = [&](std::vector<double> mean, std::vector<double> std) {
        options.mean = std::move(mean);
        options.std = std::move(std);
        return test::error_of([&] { hdf5_source(options); }).code();
    };
    CHECK(code({1, 2, 3}, {1, 2, 3}) == ExitCode::usage);
    CHECK(code({1}, {1, 2}) == ExitCode::usage);
    CHECK(code({1}, {0}) == ExitCode::usage);
    CHECK(code({1e39}, {1}) == ExitCode::data);
}

TEST_CASE("a mean of bytes that are not divided by 255 is warned of by imports and by training") {
    test::ScratchDir const scratch;
    auto const write = [&](std::string const& name, double mean) {
        test::write_small_set(scratch / name, 4);
        h5::Handle const file{H5Fopen((scratch / name).c_str(), H5F_ACC_RDWR, H5P_DEFAULT),
                              H5Fclose};
        h5::Handle const attribute{H5Aopen(file.id(), "mean", H5P_DEFAULT), H5Aclose};
        H5Awrite(attribute.id(), H5T_NATIVE_DOUBLE, &mean);
        return scratch / name;
    };
    auto const bytes = write("bytes.h5", 127);
    auto const warning = concat("warning: mean = 127 in ", bytes.string(), " is outside");
    auto const has = [](std::vector<std::string> const& lines, std::string const& begin) {
        return std::ranges::any_of(lines,
                                   [&](auto const& line) { return line.starts_with(begin); });
    };
    CHECK(has(Dataset({.files = bytes.string()}).remarks(), warning));
    CHECK(has(hdf5_source({.source = bytes})->remarks(), warning));
    CHECK(has(hdf5_source({.source = bytes, .type = "f32"})->remarks(), warning));
    CHECK(has(hdf5_source({.source = bytes, .mean = {58}, .std = {1}})->remarks(),
              "warning: mean = 58 in --mean is outside"));
    auto const fine = write("fine.h5", 0.5);
    CHECK(hdf5_source({.source = fine})->remarks().empty());
    Dataset other({.files = fine.string()});
    CHECK(other.remarks().empty());
    other.scale_as({127}, {0.5}, false);
    CHECK(other.remarks().empty()); // its own file says nothing of the kind
}
