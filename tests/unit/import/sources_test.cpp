// What samples were made from: stored with them, in their order, whatever becomes of them.

#include "base/file.hpp"
#include "base/text.hpp"
#include "data/format.hpp"
#include "data/inspect.hpp"
#include "data/look_through.hpp"
#include "data/sample_sources.hpp"
#include "data/verify.hpp"
#include "import/hdf5_source.hpp"
#include "import/series_source.hpp"
#include "import/text_source.hpp"
#include "lockstep/data/dataset.hpp"

#include <array>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "number_source.hpp"
#include "scratch_dir.hpp"
#include "small_set.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

std::vector<std::string> sources_in(std::string const& files, std::int64_t sequence = 0) {
    DatasetOptions options{.files = files, .sequence = sequence};
    Dataset const set(options);
    SampleSources sources(set, sequence);
    std::vector<std::string> found;
    for (std::int64_t i = 0; i < set.samples(); ++i) {
        found.push_back(sources.of(i));
    }
    return found;
}

/// Item i gives i % 3 samples of its name.
std::vector<std::string> names_of_numbers(std::int64_t items) {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < items; ++i) {
        names.insert(names.end(), static_cast<std::size_t>(i % 3), std::to_string(i));
    }
    return names;
}

} // namespace

TEST_CASE("every sample has the name of its item, in files of any form") {
    test::ScratchDir const scratch;
    test::NumberSource const source(100);
    auto const expected = names_of_numbers(100);
    for (auto const& options :
         {ImportOptions{}, ImportOptions{.deflate = 4}, ImportOptions{.shard_samples = 7}}) {
        CAPTURE(options.deflate, options.shard_samples);
        test::import_to(scratch / "set.h5", source, options);
        auto const files =
            (scratch / "set").string() + (options.shard_samples > 0 ? "-*.h5" : ".h5");
        CHECK(sources_in(files) == expected);
    }
    test::import_to(scratch / "none.h5", source, {.without_sources = true});
    CHECK(sources_in((scratch / "none.h5").string()) == std::vector<std::string>(expected.size()));
    CHECK_FALSE(sources_in(h5::File::open(scratch / "none.h5")));
}

TEST_CASE("what is skipped takes no other sample's name") {
    test::ScratchDir const scratch;
    test::NumberSource source(100);
    source.before_read = [](std::int64_t item) {
        if (item == 50) {
            throw Error(ExitCode::data, {"50", "it is bad", "Mend it"});
        }
    };
    test::import_to(scratch / "set.h5", source, {.skip_bad = true});
    auto expected = names_of_numbers(100);
    std::erase(expected, "50");
    CHECK(sources_in((scratch / "set.h5").string()) == expected);
    source.before_read = [](std::int64_t item) {
        throw Error(ExitCode::data, {concat("item ", item), "it is bad", "Mend it"});
    };
    auto const error =
        test::error_of([&] { test::import_to(scratch / "no.h5", source, {.skip_bad = true}); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "none of 100 items can be read; item 0: it is bad"));
    CHECK_FALSE(std::filesystem::exists(scratch / "no.h5"));
}

TEST_CASE("names follow their samples through a split, another import, and are verified") {
    test::ScratchDir const scratch;
    std::string table = "a,k\n";
    for (int line = 2; line < 42; ++line) {
        table += concat(line, ",", line % 2, "\n");
    }
    write_text_durably(scratch / "t.csv", table);
    SeriesImport const options{.source = scratch / "t.csv", .target = "k"};
    test::import_to(scratch / "sets", *series_source(options), {.split = {.shares = {0.5, 0.5}}});
    for (std::string const name : {"train.h5", "validation.h5"}) {
        auto const path = scratch / "sets" / name;
        test::import_to(scratch / "again.h5", *hdf5_source({.source = path}));
        for (auto const& each : {path, scratch / "again.h5"}) {
            auto const file = h5::File::open(each);
            std::vector<float> values(20);
            file.read("inputs", h5::Type::f32, values);
            std::vector<std::string> expected;
            for (auto const value : values) {
                expected.push_back(concat("line ", static_cast<int>(value)));
            }
            CHECK(sources_in(each.string()) == expected);
            CHECK(verify(each).empty());
            look_through_sources({.files = each.string()});
            CHECK(describe(each).first_source == expected.front());
            CHECK(describe(each).last_source == expected.back());
        }
    }
    auto const path = scratch / "sets/train.h5";
    auto const at = h5::File::open(path).info(sources_name).offset.value();
    File::open_write(path).write_at(at, std::as_bytes(std::span("LINE", 4)));
    CHECK(verify(path).size() == 1);
    CHECK(sources_in(path.string()).front().starts_with("LINE"));
}

TEST_CASE("a file's names that do not fit its samples are an error of verify") {
    test::ScratchDir const scratch;
    test::import_to(scratch / "set.h5", test::NumberSource(20));
    auto const file = h5::File::open(scratch / "set.h5");
    CHECK(
        test::says(test::error_of([&] { require_sources(file, 18); }), "19 names for 18 samples"));
    auto const offsets = file.info("sources_offsets").offset.value();
    std::int64_t const wrong = 1 << 20;
    File::open_write(scratch / "set.h5")
        .write_at(offsets + 8 * 5, std::as_bytes(std::span(&wrong, 1)));
    auto const error =
        test::error_of([&] { look_through_sources({.files = (scratch / "set.h5").string()}); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "its offsets do not divide"));
}

TEST_CASE("too few names are refused in our files, and are no sources in others") {
    test::ScratchDir const scratch;
    auto const write = [&](std::string const& name, bool ours, std::size_t names) {
        auto file = h5::File::create(scratch / name);
        file.create_dataset("inputs", h5::Type::f32, {3, 2});
        file.write("inputs", h5::Type::f32, std::vector<float>(6, 1));
        file.create_dataset("targets", h5::Type::i64, {3});
        file.write("targets", h5::Type::i64, std::vector<std::int64_t>{0, 1, 0});
        h5::write_text_rows(file, sources_name, std::vector<std::string>(names, "a.png"));
        if (ours) {
            file.set_attribute("/", "format", std::string(format_name));
        }
        file.close();
        return DatasetOptions{.files = (scratch / name).string()};
    };
    CHECK(describe(write("all.h5", true, 3)).last_source == "a.png");
    CHECK(describe(write("theirs.h5", false, 3)).last_source == "a.png");
    auto const error = test::error_of([&] { describe(write("few.h5", true, 2)); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "2 names for 3 samples"));
    auto const theirs = write("other.h5", false, 2);
    CHECK(describe(theirs).first_source.empty());
    CHECK(sources_in(theirs.files) == std::vector<std::string>(3));
    Dataset const set(theirs);
    std::vector<std::filesystem::path> const files{theirs.files};
    CHECK_FALSE(SampleSources(set).tell(files));
}

TEST_CASE("a dataset of samples that has the name of the sources is no source") {
    test::ScratchDir const scratch;
    test::write_small_set(scratch / "theirs.h5", 20);
    CHECK(sources_in((scratch / "theirs.h5").string()) == std::vector<std::string>(20));
    test::import_to(scratch / "ours.h5", *hdf5_source({.source = scratch / "theirs.h5"}));
    CHECK(sources_in((scratch / "ours.h5").string())[7] == "sample 7");
    {
        auto file = h5::File::create(scratch / "odd.h5");
        for (std::string const name : {"inputs", "sources"}) {
            file.create_dataset(name, h5::Type::f32, {3, 2});
            file.write(name, h5::Type::f32, std::vector<float>(6, 1));
        }
        file.create_dataset("targets", h5::Type::i64, {3});
        file.write("targets", h5::Type::i64, std::vector<std::int64_t>{0, 1, 2});
        file.close();
    }
    test::import_to(scratch / "ours.h5",
                    *hdf5_source({.source = scratch / "odd.h5", .inputs = {"inputs", "sources"}}));
    CHECK(h5::File::open(scratch / "ours.h5").info("sources").shape == h5::Shape{3, 2});
    CHECK(sources_in((scratch / "ours.h5").string()) == std::vector<std::string>(3));
    look_through_sources({.files = (scratch / "ours.h5").string(), .inputs = "inputs,sources"});
}

TEST_CASE("tokens come from the document in which their sample begins") {
    test::ScratchDir const scratch;
    std::filesystem::create_directory(scratch / "texts");
    write_text_durably(scratch / "texts/a.txt", "abcdef");
    write_text_durably(scratch / "texts/b.jsonl", "{\"text\": \"ghijkl\"}\n{\"text\": \"mn\"}\n");
    test::import_to(scratch / "set.h5",
                    *text_source({.source = scratch / "texts", .vocabulary = 257}));
    // 7 + 7 + 3 tokens with those at the ends, of which the last is only a target.
    CHECK(sources_in((scratch / "set.h5").string(), 4) ==
          std::vector<std::string>{"a.txt", "a.txt", "b.jsonl:1", "b.jsonl:1"});
    look_through_sources(for_texts({.files = (scratch / "set.h5").string()}));
}
