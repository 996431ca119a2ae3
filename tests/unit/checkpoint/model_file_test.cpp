#include "base/file.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/reader.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/checkpoint/verify.hpp"

#include <array>

#include "catch.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using checkpoint::ModelFile;
using checkpoint::NamedArray;

namespace {

struct Model {
    std::array<float, 6> weight{1, 2, 3, 4, 5, 6};
    std::int64_t batches = 11;
    checkpoint::Record record{{{"step", 5}}, {{"accuracy", 0.9}}, "", "", {}};

    std::vector<NamedArray> arrays() const {
        return {{"model/conv1/weight", h5::Type::f32, {2, 3}, std::as_bytes(std::span(weight))},
                {"model/norm/batches", h5::Type::i64, {}, std::as_bytes(std::span(&batches, 1))}};
    }
};

std::size_t files_in(std::filesystem::path const& directory) {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory), {}));
}

} // namespace

TEST_CASE("a model is read back by name") {
    test::ScratchDir const scratch;
    Model const model;
    checkpoint::write_model(scratch / "best.h5", model.arrays(), model.record);
    CHECK(files_in(scratch.path()) == 1);
    CHECK(checkpoint::verify(scratch / "best.h5").empty());

    ModelFile const file(scratch / "best.h5");
    CHECK(file.record() == model.record);
    REQUIRE(file.entries().size() == 2);
    CHECK(file.entry("model/conv1/weight").shape == h5::Shape{2, 3});
    CHECK(file.entry("model/norm/batches").shape.empty());
    std::array<float, 6> weight{};
    file.read("model/conv1/weight", std::as_writable_bytes(std::span(weight)));
    CHECK(weight == model.weight);
    std::int64_t batches = 0;
    file.read("model/norm/batches", std::as_writable_bytes(std::span(&batches, 1)));
    CHECK(batches == 11);
    CHECK_THROWS_AS(file.read("model/conv1/weight", {}), Error);
    CHECK_THROWS_AS(file.entry("model/none"), Error);
}

TEST_CASE("a better model replaces the old one, a failed write leaves it") {
    test::ScratchDir const scratch;
    Model model;
    checkpoint::write_model(scratch / "best.h5", model.arrays(), model.record);
    auto wrong = model.arrays();
    wrong[0].shape = {2, 4};
    CHECK_THROWS_AS(checkpoint::write_model(scratch / "best.h5", wrong, {}), Error);
    wrong = model.arrays();
    wrong[1].path = wrong[0].path; // HDF5 refuses the second, half-way
    CHECK_THROWS_AS(checkpoint::write_model(scratch / "best.h5", wrong, {}), Error);
    CHECK(files_in(scratch.path()) == 1);
    CHECK(ModelFile(scratch / "best.h5").record() == model.record);

    model.record.integers["step"] = 6;
    checkpoint::write_model(scratch / "best.h5", model.arrays(), model.record);
    CHECK(ModelFile(scratch / "best.h5").record() == model.record);
}

TEST_CASE("a damaged byte of a model file is found, and other files are refused") {
    test::ScratchDir const scratch;
    Model const model;
    checkpoint::write_model(scratch / "best.h5", model.arrays(), model.record);
    auto const file = File::open_write(scratch / "best.h5");
    file.write_at(file.size() / 2, std::as_bytes(std::span("?", 1)));
    CHECK(checkpoint::verify(scratch / "best.h5").size() == 1);
    checkpoint::write_model(scratch / "best.h5", model.arrays(), model.record);
    CHECK_THROWS_AS(checkpoint::Reader(scratch / "best.h5"), Error); // no checkpoint
}
