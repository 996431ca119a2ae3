#include "base/file.hpp"
#include "data/inspect.hpp"
#include "data/verify.hpp"
#include "import/idx_source.hpp"
#include "import/import.hpp"
#include "lockstep/data/dataset.hpp"

#include <zlib.h>

#include <cmath>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

std::string idx_text(std::vector<std::uint32_t> const& shape,
                     std::vector<std::uint8_t> const& values) {
    std::string text{'\0', '\0', '\x08', static_cast<char>(shape.size())};
    for (auto const extent : shape) {
        for (int shift = 24; shift >= 0; shift -= 8) {
            text.push_back(static_cast<char>((extent >> shift) & 0xff));
        }
    }
    text.insert(text.end(), values.begin(), values.end());
    return text;
}

void write_gzipped(std::filesystem::path const& path, std::string const& text) {
    gzFile const file = gzopen(path.c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
}

std::vector<std::uint8_t> const train_values{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 255};
std::vector<std::uint8_t> const test_values{1, 2, 3, 4};

/// Three training images of 2 x 2 and one for testing; images gzipped, labels plain.
void write_directory(std::filesystem::path const& directory) {
    write_gzipped(directory / "train-images-idx3-ubyte.gz", idx_text({3, 2, 2}, train_values));
    write_text_durably(directory / "train-labels-idx1-ubyte", idx_text({3}, {2, 0, 1}));
    write_gzipped(directory / "t10k-images-idx3-ubyte.gz", idx_text({1, 2, 2}, test_values));
    write_text_durably(directory / "t10k-labels-idx1-ubyte", idx_text({1}, {2}));
}

ExitCode import_code(std::filesystem::path const& directory, std::filesystem::path const& out) {
    return test::error_of([&] { test::import_to(out, *idx_source({directory, {}})); }).code();
}

} // namespace

TEST_CASE("a directory of IDX files, some gzipped, becomes a training and a test set") {
    test::ScratchDir const scratch;
    write_directory(scratch.path());
    std::int64_t told = 0;
    auto const source = idx_source({scratch.path(), {"a", "b", "c"}});
    auto const files = import_set(comm::Communicator::self(), *source, {.out = scratch / "out"},
                                  [&](std::string const&, std::int64_t done, std::int64_t all) {
                                      CHECK(done <= all);
                                      told += done == all ? 1 : 0;
                                  })
                           .files;
    REQUIRE(files.size() == 2);
    CHECK(told == 2); // once for the images, once for the files
    CHECK(files[0].path == scratch / "out" / "train.h5");
    CHECK(files[1].path == scratch / "out" / "test.h5");
    CHECK(files[0].bytes == std::filesystem::file_size(files[0].path));

    auto const train = describe(files[0].path);
    CHECK(train.class_names == std::vector<std::string>{"a", "b", "c"});
    CHECK(train.class_counts == std::vector<std::int64_t>{1, 1, 1});
    double sum = 0;
    double squares = 0;
    for (auto const value : train_values) {
        sum += value / 255.0;
        squares += value / 255.0 * (value / 255.0);
    }
    double const mean = sum / 12;
    CHECK(train.mean.at(0) == Approx(mean));
    CHECK(train.std.at(0) == Approx(std::sqrt(squares / 12 - mean * mean)));

    // The test set is seen as the training set was.
    CHECK(describe(files[1].path).mean == train.mean);
    CHECK(describe(files[1].path).std == train.std);
    CHECK(verify(files[0].path).empty());
    CHECK(verify(files[1].path).empty());

    Dataset const set({.files = files[0].path.string()});
    std::vector<std::int64_t> labels(3);
    std::vector<std::int64_t> const all{0, 1, 2};
    std::vector<float> values(12);
    set.read_targets(all, labels);
    set.read_inputs(all, values);
    CHECK(labels == std::vector<std::int64_t>{2, 0, 1});
    for (std::size_t i = 0; i < values.size(); ++i) {
        CHECK(values[i] ==
              (static_cast<float>(train_values[i]) / 255.0F - static_cast<float>(train.mean[0])) /
                  static_cast<float>(train.std[0]));
    }
}

TEST_CASE("a directory with a missing, cut or mistaken file is refused with its exit code") {
    test::ScratchDir const scratch;
    auto const images = scratch / "train-images-idx3-ubyte.gz";
    write_directory(scratch.path());

    std::filesystem::resize_file(images, std::filesystem::file_size(images) / 2);
    CHECK(import_code(scratch.path(), scratch / "out") == ExitCode::data);

    write_gzipped(images, idx_text({3, 2, 2}, {0, 10, 20, 30}));
    CHECK(import_code(scratch.path(), scratch / "out") == ExitCode::data);

    auto floats = idx_text({3, 2, 2}, train_values);
    floats[2] = '\x0d'; // an IDX file of float32
    write_gzipped(images, floats);
    CHECK(import_code(scratch.path(), scratch / "out") == ExitCode::data);

    std::filesystem::remove(images);
    CHECK(import_code(scratch.path(), scratch / "out") == ExitCode::no_input);
    CHECK_FALSE(std::filesystem::exists(scratch / "out" / "train.h5"));
}

TEST_CASE("fewer class names than labels are refused") {
    test::ScratchDir const scratch;
    write_directory(scratch.path());
    auto const error = test::error_of([&] {
        test::import_to(scratch / "out", *idx_source({scratch.path(), {"a", "b"}}));
    });
    CHECK((error.code() == ExitCode::usage || error.code() == ExitCode::data));
    CHECK(test::says(error, "2"));
}

TEST_CASE("an output that cannot be made is 73") {
    test::ScratchDir const scratch;
    write_directory(scratch.path());
    write_text_durably(scratch / "out", "a file stands where the directory must be");
    CHECK(import_code(scratch.path(), scratch / "out") == ExitCode::cannot_create);
}
