#include "base/file.hpp"
#include "base/text.hpp"
#include "data/inspect.hpp"
#include "data/verify.hpp"
#include "import/hdf5_source.hpp"
#include "import/idx_source.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <array>
#include <cmath>
#include <functional>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

/// An IDX file of bytes.
void write_idx(std::filesystem::path const& path, std::vector<std::uint32_t> const& shape,
               std::size_t values) {
    std::string text{'\0', '\0', '\x08', static_cast<char>(shape.size())};
    for (auto const extent : shape) {
        for (int shift = 24; shift >= 0; shift -= 8) {
            text.push_back(static_cast<char>((extent >> shift) & 0xff));
        }
    }
    for (std::size_t i = 0; i < values; ++i) {
        text.push_back(static_cast<char>(i % 3));
    }
    write_text_durably(path, text);
}

} // namespace

TEST_CASE("an IDX pair becomes a data set with mean, deviation and checksums") {
    test::ScratchDir const scratch;
    write_idx(scratch / "images", {9, 2, 2}, 36);
    write_idx(scratch / "labels", {9}, 9);
    auto const source = (scratch / "images").string() + "," + (scratch / "labels").string();
    auto const out = scratch / "set.h5";
    auto const report = test::import_to(out, *idx_source({source, {"x", "y", "z"}}));
    CHECK(report.files.at(0).samples == 9);
    auto const info = describe(out);
    CHECK(info.ours);
    CHECK(info.fields[0].shape == h5::Shape{2, 2});
    CHECK(info.class_names == std::vector<std::string>{"x", "y", "z"});
    CHECK(info.class_counts == std::vector<std::int64_t>{3, 3, 3});
    CHECK(info.mean.at(0) == Approx(1.0 / 255));
    CHECK(info.std.at(0) == Approx(std::sqrt(2.0 / 3) / 255));
    CHECK(verify(out).empty());

    SECTION("a changed byte is found, and where") {
        auto const file = h5::File::open(out);
        for (std::string const name : {"inputs", "targets"}) {
            auto const at = file.info(name).offset.value() + 3;
            std::array<std::byte, 1> byte{};
            auto const raw = File::open_write(out);
            raw.read_at(at, byte);
            byte[0] ^= std::byte{1};
            raw.write_at(at, byte);
            auto const damage = verify(out);
            REQUIRE(damage.size() == 1);
            CHECK(damage[0].dataset == name);
            CHECK((damage[0].first_byte <= at && at <= damage[0].last_byte));
            byte[0] ^= std::byte{1};
            raw.write_at(at, byte);
        }
    }

    SECTION("HDF5 of any layout is imported, too") {
        test::import_to(scratch / "copy.h5", *hdf5_source({.source = out}));
        CHECK(Dataset({.files = (scratch / "copy.h5").string()}).fingerprint() ==
              Dataset({.files = out.string()}).fingerprint());
        CHECK(verify(scratch / "copy.h5").empty());
    }
}

TEST_CASE("damaged IDX files are refused and leave nothing behind") {
    test::ScratchDir const scratch;
    write_idx(scratch / "images", {9, 2, 2}, 36);
    write_idx(scratch / "short", {9, 2, 2}, 30);
    write_idx(scratch / "labels", {9}, 9);
    write_idx(scratch / "few", {8}, 8);
    write_text_durably(scratch / "text", "no IDX file at all");
    auto const import = [&](std::string const& images, std::string const& labels) {
        return test::code_of([&] {
            auto const pair = concat((scratch / images).string(), ",", (scratch / labels).string());
            test::import_to(scratch / "out.h5", *idx_source({pair, {}}));
        });
    };
    CHECK(import("short", "labels") == ExitCode::data);
    CHECK(import("images", "few") == ExitCode::data);
    CHECK(import("text", "labels") == ExitCode::data);
    CHECK(import("none", "labels") == ExitCode::no_input);
    CHECK_FALSE(std::filesystem::exists(scratch / "out.h5"));
    CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 5);
}
