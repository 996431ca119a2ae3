#include "base/file.hpp"
#include "data/inspect.hpp"
#include "data/verify.hpp"
#include "h5/element_type.hpp"
#include "import/image_source.hpp"
#include "lockstep/data/dataset.hpp"

#include <array>
#include <numeric>
#include <png.h>
#include <turbojpeg.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

using Pixels = std::vector<std::uint8_t>;

/// A gray PNG file that libpng wrote.
void write_png(std::filesystem::path const& path, unsigned width, unsigned height,
               Pixels const& values, unsigned format = PNG_FORMAT_GRAY) {
    std::filesystem::create_directories(path.parent_path());
    png_image png{};
    png.version = PNG_IMAGE_VERSION;
    png.width = width;
    png.height = height;
    png.format = format;
    REQUIRE(png_image_write_to_file(&png, path.c_str(), 0, values.data(), 0, nullptr) != 0);
}

void write_jpeg(std::filesystem::path const& path, int width, int height, Pixels const& rgb) {
    std::filesystem::create_directories(path.parent_path());
    unsigned char* bytes = nullptr;
    unsigned long count = 0;
    auto* const encoder = tjInitCompress();
    REQUIRE(tjCompress2(encoder, rgb.data(), width, 0, height, TJPF_RGB, &bytes, &count, TJSAMP_444,
                        95, TJFLAG_ACCURATEDCT) == 0);
    write_text_durably(path, std::string(reinterpret_cast<char*>(bytes), count));
    tjFree(bytes);
    tjDestroy(encoder);
}

Pixels pixels_of(std::filesystem::path const& path) {
    auto const file = h5::File::open(path);
    Pixels values(h5::elements(file.info("inputs").shape));
    file.read("inputs", h5::Type::u8, values);
    return values;
}

/// Five files of each of two classes, one of 2 x 3 pixels that begins with 10 * class + number.
void write_tree(std::filesystem::path const& root) {
    for (std::uint8_t label = 0; label < 2; ++label) {
        for (std::uint8_t i = 0; i < 5; ++i) {
            Pixels values(6);
            std::iota(values.begin(), values.end(), static_cast<std::uint8_t>(10 * label + i));
            write_png(root / (label == 0 ? "cat" : "dog") / (std::to_string(i) + ".png"), 3, 2,
                      values);
        }
    }
}

} // namespace

TEST_CASE("a folder of PNG files for each class becomes a data set with their names") {
    test::ScratchDir const scratch;
    write_tree(scratch / "tree");
    auto const out = scratch / "set.h5";
    auto const report =
        test::import_to(out, *image_source({.source = scratch / "tree", .gray = true}));
    CHECK(report.sets.at(0).class_counts == std::vector<std::int64_t>{5, 5});
    auto const info = describe(out);
    CHECK(info.fields.front().shape == h5::Shape{1, 2, 3});
    CHECK(info.class_names == std::vector<std::string>{"cat", "dog"});
    CHECK(info.class_counts == std::vector<std::int64_t>{5, 5});
    CHECK(verify(out).empty());
    auto const values = pixels_of(out);
    CHECK(Pixels(values.begin(), values.begin() + 12) ==
          Pixels{0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6});
    CHECK(values.back() == 14 + 5);
    double sum = 0;
    for (auto const value : values) {
        sum += value;
    }
    CHECK(info.mean.at(0) == Approx(sum / 60 / 255));
    CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 2);
}

TEST_CASE("colours are kept by channel, JPEG and PNG alike, and gray is their luma") {
    test::ScratchDir const scratch;
    Pixels rgb;
    for (int i = 0; i < 64; ++i) {
        rgb.insert(rgb.end(), {200, 100, 50});
    }
    write_jpeg(scratch / "tree/a/x.JPG", 8, 8, rgb);
    write_png(scratch / "tree/a/y.png", 8, 8, rgb, PNG_FORMAT_RGB);
    ImageImport options{.source = scratch / "tree"};
    test::import_to(scratch / "rgb.h5", *image_source(options));
    auto const colours = pixels_of(scratch / "rgb.h5");
    REQUIRE(colours.size() == 2 * 3 * 64);
    for (std::size_t i = 0; i < 192; ++i) {
        CHECK(std::abs(int{colours[i]} - rgb[i / 64]) <= 2); // JPEG is lossy
        CHECK(colours[192 + i] == rgb[i / 64]);
    }
    CHECK(describe(scratch / "rgb.h5").mean.size() == 3);
    options.gray = true;
    test::import_to(scratch / "gray.h5", *image_source(options));
    CHECK(pixels_of(scratch / "gray.h5").back() == (299 * 200 + 587 * 100 + 114 * 50 + 500) / 1000);
}

TEST_CASE("scaling weighs pixels by a triangle as wide as a pixel of the result") {
    test::ScratchDir const scratch;
    write_png(scratch / "tree/a/x.png", 4, 1, {0, 80, 160, 240});
    ImageImport options{.source = scratch / "tree", .width = 2, .height = 1};
    options.gray = true;
    test::import_to(scratch / "small.h5", *image_source(options));
    // Centers 1 and 3, reach 2: weights 3, 3, 1 of 7 after the edge cuts off the fourth.
    CHECK(pixels_of(scratch / "small.h5") == Pixels{57, 183});
    options.width = 8;
    test::import_to(scratch / "large.h5", *image_source(options));
    CHECK(pixels_of(scratch / "large.h5") == Pixels{0, 20, 60, 100, 140, 180, 220, 240});
}

TEST_CASE("images are cut out of the middle in their proportions") {
    test::ScratchDir const scratch;
    Pixels values(10 * 4);
    std::iota(values.begin(), values.end(), std::uint8_t{0});
    write_png(scratch / "tree/a/x.png", 10, 4, values);
    ImageImport options{
        .source = scratch / "tree", .width = 4, .height = 4, .center_crop = true, .gray = true};
    test::import_to(scratch / "wide.h5", *image_source(options));
    CHECK(pixels_of(scratch / "wide.h5") ==
          Pixels{3, 4, 5, 6, 13, 14, 15, 16, 23, 24, 25, 26, 33, 34, 35, 36});
    options.shorter = 8; // 20 x 8, whose middle is enlarged to twice the size
    test::import_to(scratch / "larger.h5", *image_source(options));
    auto const middle = pixels_of(scratch / "larger.h5");
    CHECK(Pixels(middle.begin(), middle.begin() + 4) == Pixels{11, 12, 12, 13});
    options.width = 2;
    options.height = 4;
    options.shorter = 0;
    test::import_to(scratch / "tall.h5", *image_source(options));
    CHECK(pixels_of(scratch / "tall.h5") == Pixels{4, 5, 14, 15, 24, 25, 34, 35});
    write_png(scratch / "thin/a/x.png", 16000, 1, Pixels(16000));
    options.source = scratch / "thin";
    options.shorter = 16000;
    auto const error =
        test::error_of([&] { test::import_to(scratch / "thin.h5", *image_source(options)); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "too large"));
}

TEST_CASE("a bad file stops an import by its name, or is skipped and listed") {
    test::ScratchDir const scratch;
    write_tree(scratch / "tree");
    auto const bad = scratch / "tree/dog/3.png";
    std::filesystem::resize_file(bad, std::filesystem::file_size(bad) / 2);
    write_text_durably(scratch / "tree/cat/none.jpg", "no picture");
    auto const source = image_source({.source = scratch / "tree", .gray = true});
    auto const error = test::error_of([&] { test::import_to(scratch / "set.h5", *source); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "none.jpg"));
    CHECK_FALSE(std::filesystem::exists(scratch / "set.h5"));
    auto const report = test::import_to(scratch / "set.h5", *source, {.skip_bad = true});
    REQUIRE(report.skipped.size() == 2);
    CHECK(report.skipped[0].find("none.jpg") != std::string::npos);
    CHECK(report.skipped[1].find("3.png") != std::string::npos);
    CHECK(report.sets.at(0).class_counts == std::vector<std::int64_t>{5, 4});
}

TEST_CASE("images of other sizes, of no class, or none at all are refused") {
    test::ScratchDir const scratch;
    ImageImport const options{.source = scratch / "tree"};
    CHECK(test::error_of([&] { image_source(options); }).code() == ExitCode::no_input);
    write_png(scratch / "tree/a/x.png", 4, 1, {0, 80, 160, 240});
    write_png(scratch / "tree/a/y.png", 2, 2, {0, 80, 160, 240});
    auto const error =
        test::error_of([&] { test::import_to(scratch / "set.h5", *image_source(options)); });
    CHECK(test::says(error, "y.png"));
    CHECK(test::says(error, "--size"));
    write_png(scratch / "tree/z.png", 1, 1, {0});
    CHECK(test::says(test::error_of([&] { image_source(options); }), "not in a class folder"));
}

TEST_CASE("folders named train and test are sets, and a table names classes and groups") {
    test::ScratchDir const scratch;
    write_tree(scratch / "tree/train");
    write_tree(scratch / "tree/test");
    ImageImport options{.source = scratch / "tree", .gray = true};
    auto const files = test::import_to(scratch / "out", *image_source(options)).files;
    REQUIRE(files.size() == 2);
    CHECK(files[0].path == scratch / "out/train.h5");
    CHECK(files[1].path == scratch / "out/test.h5");

    write_text_durably(scratch / "labels.csv", "file,label,owner\ntrain/cat/0.png,10,ann\n"
                                               "train/dog/1.png,9,\"Bo, jr\"\n"
                                               "train/cat/1.png,10,ann\n");
    options.labels.path = scratch / "labels.csv";
    options.split_by = "owner";
    auto const source = image_source(options);
    CHECK(source->form().class_names == std::vector<std::string>{"9", "10"});
    CHECK(source->group(1) == "Bo, jr");
    test::import_to(scratch / "set.h5", *source);
    CHECK(pixels_of(scratch / "set.h5").at(6) == 11);
    options.split_by = "colour";
    CHECK(test::says(test::error_of([&] { image_source(options); }), "file, label, owner"));
}

TEST_CASE("a table that names no file, a folder or no set is refused by its line") {
    test::ScratchDir const scratch;
    std::filesystem::create_directories(scratch / "tree/folder");
    auto const refused = [&](std::string const& lines) {
        write_text_durably(scratch / "t.csv", "file,label,set\n" + lines);
        ImageImport const options{.source = scratch / "tree",
                                  .labels = {.path = scratch / "t.csv"},
                                  .width = 2,
                                  .height = 2};
        auto const error = test::error_of(
            [&] { test::import_to(scratch / "out", *image_source(options), {.skip_bad = true}); });
        CHECK(error.code() == ExitCode::data);
        return std::string(error.what());
    };
    using Catch::Matchers::Contains;
    CHECK_THAT(refused("a.png,one,train\n,one,train\n"),
               Contains("line 3: the value in column file is empty"));
    CHECK_THAT(refused("folder,one,train\n"), Contains("folder is a directory"));
    CHECK_THAT(refused("a.png,one,trian\n"), Contains("line 2: there is no set named trian"));
    CHECK_THAT(refused("a.png,one,../../x\n"), Contains("Name train, validation or test"));
    CHECK_THAT(refused("a.png,one,train\nb.png,one,\n"),
               Contains("b.png: this item belongs to no set"));
}
