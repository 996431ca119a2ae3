#include "base/file.hpp"
#include "base/text.hpp"
#include "data/inspect.hpp"
#include "data/verify.hpp"
#include "h5/element_type.hpp"
#include "import/hdf5_source.hpp"

#include <hdf5.h>

#include <array>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

std::filesystem::path imported(test::ScratchDir const& scratch) {
    test::write_small_set(scratch / "theirs.h5", 50);
    test::import_to(scratch / "ours.h5", *hdf5_source({.source = scratch / "theirs.h5"}));
    return scratch / "ours.h5";
}

void flip_byte(std::filesystem::path const& path, std::uint64_t at) {
    auto const file = File::open_write(path);
    std::array<std::byte, 1> byte{};
    file.read_at(at, byte);
    byte[0] ^= std::byte{0x10};
    file.write_at(at, byte);
}

/// Whether `verify` says that the file is not as it was.
bool found(std::filesystem::path const& path) {
    try {
        return !verify(path).empty();
    } catch (Error const& error) {
        return error.code() == ExitCode::data;
    }
}

} // namespace

TEST_CASE("a changed byte of any dataset is found") {
    test::ScratchDir const scratch;
    auto const path = imported(scratch);
    REQUIRE(verify(path).empty());
    std::vector<h5::DatasetInfo> datasets;
    {
        auto const file = h5::File::open(path);
        datasets = file.datasets();
    }
    REQUIRE(datasets.size() >= 4);
    for (auto const& info : datasets) {
        CAPTURE(info.path);
        auto const bytes = h5::elements(info.shape) * h5::size_of(info.type.value());
        for (std::uint64_t const at : {std::uint64_t{0}, bytes / 2, bytes - 1}) {
            flip_byte(path, info.offset.value() + at);
            CHECK(found(path));
            flip_byte(path, info.offset.value() + at);
        }
    }
    CHECK(verify(path).empty());
}

TEST_CASE("a file's blocks are divided into parts, of which the first has all else, too") {
    test::ScratchDir const scratch;
    constexpr std::uint64_t samples = 5 << 20; // a block for each value of a sample, of five
    {
        auto file = h5::File::create(scratch / "theirs.h5");
        file.create_dataset("inputs", h5::Type::u8, {samples});
        file.write("inputs", h5::Type::u8, std::vector<std::uint8_t>(samples, 7));
        file.create_dataset("targets", h5::Type::f32, {samples});
        file.write("targets", h5::Type::f32, std::vector<float>(samples));
        file.close();
    }
    auto const path = scratch / "ours.h5";
    test::import_to(path, *hdf5_source({.source = scratch / "theirs.h5"}));
    auto const at = h5::File::open(path).info("inputs").offset.value();
    auto const source = hdf5_source({.source = path});
    CHECK(source->bytes_to_verify() == std::filesystem::file_size(path));
    for (std::uint64_t block = 0; block < 5; ++block) {
        flip_byte(path, at + (block << 20) + 3);
        for (std::uint64_t part = 0; part < 5; ++part) {
            CHECK(verify(path, {part, 5}).size() == (part == block ? 1 : 0));
        }
        CHECK(test::says(test::error_of([&] { test::import_to(scratch / "again.h5", *source); }),
                         "inputs has changed in bytes"));
        flip_byte(path, at + (block << 20) + 3);
    }
    auto const text = read_text(path);
    flip_byte(path, text.find("lockstep-dataset"));
    CHECK(verify(path, {0, 2}).size() == 1);
    CHECK(verify(path, {1, 2}).empty());
}

TEST_CASE("a changed mean is found") {
    test::ScratchDir const scratch;
    auto const path = imported(scratch);
    auto const text = read_text(path);
    auto const mean = text.find(std::string("\0\0\0\0\0\0\xd0\x3f", 8)); // 0.25
    REQUIRE(mean != std::string::npos);
    flip_byte(path, mean + 6);
    CHECK(found(path));
}

TEST_CASE("what lost its checksums since the import is refused, unlike what was added") {
    test::ScratchDir const scratch;
    for (auto const* const name : {"inputs", "targets", ""}) {
        CAPTURE(name);
        auto const path = imported(scratch);
        auto const file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        REQUIRE(file >= 0);
        if (*name == '\0') {
            auto const space = H5Screate(H5S_SCALAR);
            auto const more = H5Dcreate2(file, "more", H5T_STD_I64LE, space, H5P_DEFAULT,
                                         H5P_DEFAULT, H5P_DEFAULT);
            REQUIRE(more >= 0);
            H5Dclose(more);
            H5Sclose(space);
        } else {
            REQUIRE(H5Ldelete(file, concat("checksums/", name).c_str(), H5P_DEFAULT) >= 0);
        }
        H5Fclose(file);
        auto const expected = *name == '\0' ? ExitCode::ok : ExitCode::data;
        CHECK(test::code_of([&] { static_cast<void>(datasets_added_to(path)); }) == expected);
        CHECK(test::code_of([&] { static_cast<void>(verify(path)); }) == expected);
        CHECK(test::code_of([&] { Dataset const set({.files = path}); }) == expected);
    }
}

TEST_CASE("a file without checksums cannot be verified, and says so") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "theirs.h5", 50);
    auto const error = test::error_of([&] { static_cast<void>(verify(scratch / "theirs.h5")); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "lockstep data import"));
    CHECK_FALSE(describe(scratch / "theirs.h5").checksums);
    CHECK(test::error_of([&] { static_cast<void>(verify(scratch / "none.h5")); }).code() ==
          ExitCode::no_input);
}
