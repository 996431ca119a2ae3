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
    file.read("inputs", h5::Type::f64, values.data());
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
        plain.read(name, h5::Type::f64, a.data());
        small.read(name, h5::Type::f64, b.data());
        CHECK(a == b);
    }
    CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 2);
}
