#include "h5/element_type.hpp"
#include "h5/file.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/dataset.hpp"

#include <limits>
#include <numeric>
#include <set>
#include <string>

#include "catch.hpp"
#include "put.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using lockstep::data::Dataset;

namespace {

Error error_of(std::string const& files) {
    try {
        Dataset({.files = files, .labels = data::Labels::classes});
    } catch (Error const& error) {
        return error;
    }
    return Error(ExitCode::ok, {});
}

} // namespace

TEST_CASE("samples come back as float32, normalised as torch would") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "a.h5", 10);
    Dataset const set({.files = (scratch / "a.h5").string()});
    CHECK(set.samples() == 10);
    CHECK(set.sample_shape() == h5::Shape{2, 3});
    CHECK(set.class_names()[3] == "d");
    CHECK(set.class_counts() == std::vector<std::int64_t>{3, 3, 2, 2});
    std::vector<std::int64_t> const indices{7, 0, 1, 9};
    std::vector<float> values(24);
    std::vector<std::int64_t> targets(4);
    set.read_inputs(indices, values);
    set.read_targets(indices, targets);
    CHECK(targets == std::vector<std::int64_t>{3, 0, 1, 1});
    for (std::size_t i = 0; i < values.size(); ++i) {
        auto const stored = static_cast<float>(indices[i / 6] + static_cast<std::int64_t>(i % 6));
        CHECK(values[i] == (stored / 255.0F - 0.25F) / 0.5F);
    }
}

TEST_CASE("types that float32 does not hold are normalised before they are rounded") {
    test::ScratchDir const scratch;
    constexpr std::size_t count = 1000;
    auto const values_of = [&]<class Stored>(Stored first, h5::Type type) {
        std::vector<Stored> stored(count);
        std::iota(stored.begin(), stored.end(), first);
        auto const path = scratch / (h5::name_of(type) + ".h5");
        auto file = h5::File::create(path);
        test::put<Stored>(file, "x", type, {count, 1}, stored);
        file.close();
        Dataset set({.files = path.string(), .inputs = "x", .targets = "x"});
        set.scale_as({static_cast<double>(first) + 0.3}, {288.7}, false);
        std::vector<std::int64_t> indices(count);
        std::iota(indices.begin(), indices.end(), 0);
        std::vector<float> found(count);
        set.read_inputs(indices, found);
        CHECK(set.read_stored(0, indices) == std::vector<double>(stored.begin(), stored.end()));
        return found;
    };
    auto const twice = [](double first, std::size_t i) { // rounded once, at the end
        return static_cast<float>((first + static_cast<double>(i) - (first + 0.3)) / 288.7);
    };
    auto const of_doubles = values_of(1'700'000'000.5, h5::Type::f64);
    auto const of_whole = values_of(std::int32_t{1'700'000'000}, h5::Type::i32);
    auto const of_unsigned = values_of(std::uint32_t{4'000'000'000}, h5::Type::u32);
    auto const of_short = values_of(std::uint16_t{60'000}, h5::Type::u16);
    auto const of_floats = values_of(16'000.0F, h5::Type::f32);
    for (std::size_t i = 0; i < count; ++i) {
        CHECK(of_doubles[i] == twice(1'700'000'000.5, i));
        CHECK(of_whole[i] == twice(1'700'000'000, i));
        CHECK(of_unsigned[i] == twice(4'000'000'000, i));
        CHECK(of_short[i] == (60'000.0F + static_cast<float>(i) - 60'000.3F) / 288.7F);
        CHECK(of_floats[i] == (16'000.0F + static_cast<float>(i) - 16'000.3F) / 288.7F);
    }
    CHECK(std::set(of_doubles.begin(), of_doubles.end()).size() == count);
}

TEST_CASE("several files are one data set, by list and by glob") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "part-0.h5", 3);
    test::write_small_set(scratch / "part-1.h5", 5);
    auto const list = (scratch / "part-0.h5").string() + ", " + (scratch / "part-1.h5").string();
    Dataset const by_list({.files = list});
    Dataset const by_glob({.files = (scratch / "part-*.h5").string()});
    CHECK(by_list.samples() == 8);
    CHECK(by_glob.fingerprint() == by_list.fingerprint());
    std::vector<std::int64_t> const across{2, 3, 7};
    std::vector<float> values(18);
    by_list.read_inputs(across, values);
    CHECK(values[0] == (2 / 255.0F - 0.25F) / 0.5F);
    CHECK(values[6] == (0 / 255.0F - 0.25F) / 0.5F);
    CHECK(values[12] == (4 / 255.0F - 0.25F) / 0.5F);
}

TEST_CASE("the fingerprint knows other labels") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "a.h5", 4);
    test::write_small_set(scratch / "b.h5", 4, {0, 1, 2, 2});
    CHECK(Dataset({.files = (scratch / "a.h5").string()}).fingerprint() !=
          Dataset({.files = (scratch / "b.h5").string()}).fingerprint());
}

TEST_CASE("files that cannot be learnt from are refused with their exit codes") {
    test::ScratchDir const scratch;
    CHECK(error_of((scratch / "none.h5").string()).code() == ExitCode::no_input);
    CHECK(error_of((scratch / "none-*.h5").string()).code() == ExitCode::no_input);

    test::write_small_set(scratch / "label.h5", 4, {0, 1, 4, 2});
    auto const label = error_of((scratch / "label.h5").string());
    CHECK(label.code() == ExitCode::data);
    CHECK(std::string(label.what()).find("label 4 of sample 2") != std::string::npos);

    std::vector<std::int64_t> const labels{0, std::numeric_limits<std::int64_t>::max()};
    {
        auto file = h5::File::create(scratch / "largest.h5"); // which names no classes
        file.create_dataset("inputs", h5::Type::i64, {2, 1});
        file.create_dataset("targets", h5::Type::i64, {2});
        file.write("inputs", h5::Type::i64, labels);
        file.write("targets", h5::Type::i64, labels);
        file.close();
    }
    auto const largest = error_of((scratch / "largest.h5").string());
    CHECK(largest.code() == ExitCode::data);
    CHECK(std::string(largest.what()).find("labels must be from 0 to 99999") != std::string::npos);
    for (auto const values : {data::Labels::guessed, data::Labels::none}) { // they may be values
        Dataset const set({.files = (scratch / "largest.h5").string(), .labels = values});
        CHECK_FALSE(set.has_labels());
        CHECK(set.class_counts().empty());
        CHECK(set.class_names().empty());
        std::vector<std::int64_t> read(2);
        set.read_targets(std::vector<std::int64_t>{0, 1}, read);
        CHECK(read == labels);
    }
    test::write_small_set(scratch / "a.h5", 4);
    Dataset const values({.files = (scratch / "a.h5").string(), .labels = data::Labels::none});
    CHECK_FALSE(values.has_labels());
    CHECK(values.class_counts().empty());
    CHECK(values.fingerprint() == Dataset({.files = (scratch / "a.h5").string()}).fingerprint());

    test::write_small_set(scratch / "cut.h5", 5000);
    std::filesystem::resize_file(scratch / "cut.h5", 20000);
    CHECK(error_of((scratch / "cut.h5").string()).code() == ExitCode::data);

    std::filesystem::copy_file(scratch / "cut.h5", scratch / "text.h5");
    std::filesystem::resize_file(scratch / "text.h5", 100);
    CHECK(error_of((scratch / "text.h5").string()).code() == ExitCode::data);
}

TEST_CASE("a file of that very name comes before a pattern, and quotes keep commas in a name") {
    test::ScratchDir const scratch;
    for (char const* const name : {"a[1].h5", "a1.h5", "b, c.h5"}) {
        test::write_small_set(scratch / name, 4);
    }
    auto const named = (scratch / "a[1].h5").string();
    CHECK(data::expand_files(named) == std::vector<std::filesystem::path>{named});
    auto const pattern = (scratch / "?[1].h5").string();
    CHECK(data::expand_files(pattern) == std::vector<std::filesystem::path>{scratch / "a1.h5"});
    auto const quoted = "\"" + (scratch / "b, c.h5").string() + "\"";
    CHECK(Dataset({.files = named + "," + quoted}).samples() == 8);
}
