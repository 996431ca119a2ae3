// Many files of one sample each, whose datasets have no extent that counts samples.

#include "base/text.hpp"
#include "h5/file.hpp"
#include "lockstep/data/dataset.hpp"

#include <numeric>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;

namespace {

constexpr std::int64_t files = 30;

float value_of_file(std::int64_t file, std::size_t place) {
    return static_cast<float>(file * 1000) + static_cast<float>(place);
}

/// An image of 6 x 5 places with 4 values each, chunked in odd files, and a class for each place.
void write_scene(std::filesystem::path const& path, std::int64_t number, std::uint64_t height = 6) {
    std::vector<float> values(height * 20);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = value_of_file(number, i);
    }
    std::vector<std::int64_t> const labels(height * 5, number);
    double const weight = static_cast<double>(number) / 2;
    auto file = h5::File::create(path);
    if (number % 2 == 1) {
        file.create_dataset("climate/data", h5::Type::f32, {height, 5, 4},
                            {.chunk_rows = 4, .deflate = 4});
    } else {
        file.create_dataset("climate/data", h5::Type::f32, {height, 5, 4});
    }
    file.write("climate/data", h5::Type::f32, values);
    file.create_dataset("climate/labels_0", h5::Type::i64, {height, 5});
    file.write("climate/labels_0", h5::Type::i64, labels);
    file.create_dataset("kind", h5::Type::i64, {});
    file.write("kind", h5::Type::i64, std::span(labels).first(1));
    file.create_dataset("weight", h5::Type::f64, {1});
    file.write("weight", h5::Type::f64, std::span(&weight, 1));
    file.close();
}

DatasetOptions scenes(test::ScratchDir const& scratch, std::string const& targets) {
    for (std::int64_t i = 0; i < files; ++i) {
        write_scene(scratch / concat("scene-", 100 + i, ".h5"), i);
    }
    return {.files = (scratch / "scene-*.h5").string(),
            .inputs = "climate/data",
            .targets = targets,
            .sample_per_file = true,
            .weights = "weight"};
}

} // namespace

TEST_CASE("each file is a sample") {
    test::ScratchDir const scratch;
    Dataset set(scenes(scratch, "climate/labels_0"));
    bool const in_memory = GENERATE(false, true);
    if (in_memory) {
        set.keep_in_memory(comm::Communicator::self());
    }
    REQUIRE(set.samples() == files);
    CHECK(set.sample_shape() == h5::Shape{6, 5, 4});
    CHECK(set.targets().front().shape == h5::Shape{6, 5});
    CHECK_FALSE(set.has_labels());
    CHECK((*set.weights())[7] == 3.5);
    Batch batch;
    Scratch room;
    batch.indices = {29, 0, 7, 8, 7};
    set.read(batch, room);
    bool right = batch.inputs().size() == 5 * 120 && batch.targets().size() == 5 * 30;
    for (std::size_t i = 0; right && i < batch.indices.size(); ++i) {
        for (std::size_t place = 0; place < 120; ++place) {
            right =
                right && batch.inputs()[i * 120 + place] == value_of_file(batch.indices[i], place);
        }
        right = right && batch.targets()[i * 30 + 29] == batch.indices[i];
    }
    CHECK(right);
}

TEST_CASE("a file's one number is its label") {
    test::ScratchDir const scratch;
    Dataset const set(scenes(scratch, "kind"));
    CHECK(set.has_labels());
    CHECK(set.classes() == files);
    std::vector<std::int64_t> labels(2);
    set.read_targets(std::vector<std::int64_t>{4, 29}, labels);
    CHECK(labels == std::vector<std::int64_t>{4, 29});
}

TEST_CASE("a file of another shape is refused by name") {
    test::ScratchDir const scratch;
    auto const options = scenes(scratch, "climate/labels_0");
    write_scene(scratch / "scene-107.h5", 7, 8);
    auto const error = test::error_of([&] { Dataset const set(options); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "scene-107.h5"));
    CHECK(test::says(error, "the shape of a sample of dataset climate/data"));
}
