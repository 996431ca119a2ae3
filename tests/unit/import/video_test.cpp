#include "base/file.hpp"
#include "data/inspect.hpp"
#include "h5/element_type.hpp"
#include "import/video_source.hpp"

#include <png.h>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

/// A folder of gray frames of 2 x 1 pixels: frame t holds start + t, 100 + start + t.
void write_frames(std::filesystem::path const& folder, int frames, int start) {
    std::filesystem::create_directories(folder);
    for (int t = 0; t < frames; ++t) {
        png_image png{};
        png.version = PNG_IMAGE_VERSION;
        png.width = 2;
        png.height = 1;
        png.format = PNG_FORMAT_GRAY;
        auto const value = static_cast<std::uint8_t>(start + t);
        std::uint8_t const pixels[] = {value, static_cast<std::uint8_t>(100 + value)};
        auto const name = "frame-" + std::to_string(1000 + t) + ".png";
        REQUIRE(png_image_write_to_file(&png, (folder / name).c_str(), 0, pixels, 0, nullptr) != 0);
    }
}

std::vector<std::uint8_t> frames_of(std::filesystem::path const& path) {
    auto const file = h5::File::open(path);
    std::vector<std::uint8_t> values(h5::elements(file.info("inputs").shape));
    file.read("inputs", h5::Type::u8, values);
    return values;
}

} // namespace

TEST_CASE("folders of frames become clips, with strides that overlap or leave frames out") {
    test::ScratchDir const scratch;
    write_frames(scratch / "tree/left/one", 7, 0);
    write_frames(scratch / "tree/right/two", 3, 50);
    VideoImport options{
        .source = scratch / "tree", .frames = 3, .width = 2, .height = 1, .gray = true};
    auto const report = test::import_to(scratch / "set.h5", *video_source(options));
    CHECK(report.sets.at(0).class_counts == std::vector<std::int64_t>{2, 1});
    auto const info = describe(scratch / "set.h5");
    CHECK(info.fields.front().shape == h5::Shape{1, 3, 1, 2});
    CHECK(info.class_names == std::vector<std::string>{"left", "right"});
    CHECK(frames_of(scratch / "set.h5") == std::vector<std::uint8_t>{0, 100, 1, 101, 2, 102, 3, 103,
                                                                     4, 104, 5, 105, //
                                                                     50, 150, 51, 151, 52, 152});
    options.stride = 1;
    CHECK(test::import_to(scratch / "set.h5", *video_source(options)).files.at(0).samples == 6);
    CHECK(frames_of(scratch / "set.h5").at(6) == 1);
    options.stride = 4;
    CHECK(test::import_to(scratch / "set.h5", *video_source(options)).files.at(0).samples == 3);
    CHECK(frames_of(scratch / "set.h5").at(6) == 4);
    options.gray = false;
    test::import_to(scratch / "set.h5", *video_source(options));
    CHECK(describe(scratch / "set.h5").fields.front().shape == h5::Shape{3, 3, 1, 2});
    CHECK(frames_of(scratch / "set.h5").at(6) == 0); // the next channel, from the first frame

    options.frames = 4;
    auto const error =
        test::error_of([&] { test::import_to(scratch / "x.h5", *video_source(options)); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "two"));
    CHECK(test::says(error, "has 3 frames, but a clip needs"));
}

TEST_CASE("a file that is no video is refused by its name") {
    test::ScratchDir const scratch;
    std::filesystem::create_directories(scratch / "tree/a");
    write_text_durably(scratch / "tree/a/x.mp4", "no video");
    auto const error = test::error_of(
        [&] { test::import_to(scratch / "x.h5", *video_source({.source = scratch / "tree"})); });
    CHECK((error.code() == ExitCode::data || error.code() == ExitCode::unavailable));
    CHECK((test::says(error, "x.mp4") || test::says(error, "libav")));
}
