#include "base/file.hpp"
#include "base/text.hpp"
#include "data/inspect.hpp"
#include "data/verify.hpp"
#include "h5/element_type.hpp"
#include "import/part.hpp"
#include "import/series_source.hpp"

#include <cmath>

#include "catch.hpp"
#include "error_of.hpp"
#include "importing.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using namespace lockstep::data;
using namespace lockstep::import;

namespace {

std::vector<double> values_of(std::filesystem::path const& path, std::string const& name) {
    auto const file = h5::File::open(path);
    std::vector<double> values(h5::elements(file.info(name).shape));
    file.read(name, h5::Type::f64, values);
    return values;
}

constexpr char const* prices = "Date,Close,Volume,Name\n"
                               "2006-01-03,10.5,100,IBM\n"
                               "2006-01-03,20,200,AA\n"
                               "2006-01-04 00:01,,110,IBM\n"
                               "2006-01-04,21,210,AA\n";

} // namespace

TEST_CASE("a table of prices becomes a series for each name, with times and columns") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "prices.csv", prices);
    SeriesImport options{.source = scratch / "prices.csv",
                         .time = "Date",
                         .group = "Name",
                         .doubles = true,
                         .fill_forward = true};
    auto const out = scratch / "prices.h5";
    test::import_to(out, *series_source(options));
    auto const file = h5::File::open(out);
    CHECK(file.texts_attribute("/", "columns") == std::vector<std::string>{"Close", "Volume"});
    CHECK(file.texts_attribute("/", "classes") == std::vector<std::string>{"AA", "IBM"});
    CHECK(file.info("inputs").type == h5::Type::f64);
    CHECK(values_of(out, "inputs") == std::vector<double>{20, 200, 21, 210, 10.5, 100, 10.5, 110});
    CHECK(values_of(out, "inputs_offsets") == std::vector<double>{0, 2, 4});
    CHECK(values_of(out, "time") ==
          std::vector<double>{1136246400, 1136332800, 1136246400, 1136332860});
    CHECK(values_of(out, "targets") == std::vector<double>{0, 1});

    auto const why = [&](SeriesImport const& changed) {
        auto const error =
            test::error_of([&] { test::import_to(scratch / "x.h5", *series_source(changed)); });
        return std::string(error.what());
    };
    options.fill_forward = false;
    CHECK(why(options).find("line 4: the value in column Close is empty") != std::string::npos);
    options.fill_forward = true;
    options.group = "";
    CHECK(why(options).find("Name is not a number") != std::string::npos);
    options.columns = {"Volume"};
    write_text_durably(scratch / "prices.csv", "Date,Volume\n2006-01-04,1\n2006-01-03,2\n");
    CHECK(why(options).find("line 3: the value in column Date is earlier than") !=
          std::string::npos);
    options.columns = {"Open"};
    CHECK(why(options).find("its columns are Date, Volume") != std::string::npos);
}

TEST_CASE("a table whose rows are samples, of classes or with numbers as targets") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "iris.tsv", "length\twidth\tkind\n1\t2\tb\n3\t4.5\ta\n5\t6\tb\n");
    SeriesImport options{.source = scratch / "iris.tsv", .target = "kind"};
    auto const report = test::import_to(scratch / "set.h5", *series_source(options));
    CHECK(report.sets.at(0).class_counts == std::vector<std::int64_t>{1, 2});
    auto const info = describe(scratch / "set.h5");
    CHECK(info.samples == 3);
    CHECK(info.mean.at(0) == Approx(3));
    CHECK(info.mean.at(1) == Approx(12.5 / 3));
    CHECK(verify(scratch / "set.h5").empty());
    CHECK(values_of(scratch / "set.h5", "inputs") == std::vector<double>{1, 2, 3, 4.5, 5, 6});
    options.target = "width";
    options.regression = true;
    for (std::string const twice : {"width", "length"}) {
        options.columns = {"length", twice};
        CHECK_THROWS_AS(series_source(options), Error);
    }
    options.columns = {"length"};
    test::import_to(scratch / "set.h5", *series_source(options));
    CHECK(values_of(scratch / "set.h5", "targets") == std::vector<double>{2, 4.5, 6});
}

TEST_CASE("a column of names becomes an input for each of them") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "t.csv",
                       "size,colour,kind\n1,red,a\n2,blue,b\n3,red,a\n4,\"dark green\",b\n");
    SeriesImport options{.source = scratch / "t.csv", .target = "kind"};
    auto const import = [&] { test::import_to(scratch / "t.h5", *series_source(options)); };
    auto error = test::error_of(import);
    CHECK(test::says(error, "column colour is not a number: red"));
    CHECK(test::says(error, "--categories colour"));
    options.categories = {"colour"};
    import();
    auto const columns = h5::File::open(scratch / "t.h5").texts_attribute("/", "columns").value();
    CHECK(columns ==
          std::vector<std::string>{"size", "colour=blue", "colour=dark green", "colour=red"});
    auto const values = std::vector<double>{1, 0, 0, 1, 2, 1, 0, 0, 3, 0, 0, 1, 4, 0, 1, 0};
    CHECK(values_of(scratch / "t.h5", "inputs") == values);
    auto const remarks = series_source(options)->remarks();
    REQUIRE(remarks.size() == 1);
    CHECK(remarks.front() ==
          "column colour became 3 inputs, one for each of its values: blue, dark green, red");

    // The same columns of another table: as a second set of a run has them, and as predict does.
    write_text_durably(scratch / "t.csv", "colour,size,kind\nred,5,a\nblue,6,b\n");
    options.columns = columns;
    options.categories = {};
    import();
    CHECK(values_of(scratch / "t.h5", "inputs") == std::vector<double>{5, 0, 0, 1, 6, 1, 0, 0});
    options.target = "";
    options.unlabelled = true;
    import();
    CHECK(values_of(scratch / "t.h5", "inputs") == std::vector<double>{5, 0, 0, 1, 6, 1, 0, 0});
    write_text_durably(scratch / "t.csv", "colour,size,kind\nred,5,a\npink,6,b\n");
    error = test::error_of(import);
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "line 3: the value in column colour is the unknown category pink: the "
                            "model knows blue, dark green, red"));
    write_text_durably(scratch / "t.csv", "colour,size\n,5\n");
    CHECK(test::says(test::error_of(import), "column colour is empty"));
    write_text_durably(scratch / "t.csv", "colour,size\nred,5.x\n");
    error = test::error_of(import);
    CHECK(test::says(error, "is not a number: 5.x"));
    CHECK_FALSE(test::says(error, "--columns"));
}

TEST_CASE("categories that cannot be inputs are refused") {
    test::ScratchDir const scratch;
    std::string table = "id,a,a=x,k\n";
    for (int i = 0; i < 1001; ++i) {
        table += concat("n", i, ",x,1,", i % 2, "\n");
    }
    write_text_durably(scratch / "t.csv", table);
    auto const why = [&](std::vector<std::string> categories, std::vector<std::string> columns) {
        return test::error_of([&] {
            series_source({.source = scratch / "t.csv",
                           .columns = std::move(columns),
                           .categories = std::move(categories),
                           .target = "k"});
        });
    };
    CHECK(test::says(why({"id"}, {}), "1,001 different values"));
    CHECK(test::says(why({"b"}, {}), "--categories b"));
    CHECK(test::says(why({"k"}, {}), "this column is no input"));
    CHECK(test::says(why({"a"}, {"a=x"}), "this column is no input"));
    CHECK(test::says(why({"a"}, {"a"}), "would have the name of the column a=x"));
}

TEST_CASE("an empty cell of a category is filled as others are") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "t.csv", "colour,x\nred,1\n,2\nblue,3\n");
    auto const source = series_source(
        {.source = scratch / "t.csv", .categories = {"colour"}, .fill_forward = true});
    test::import_to(scratch / "t.h5", *source);
    CHECK(values_of(scratch / "t.h5", "inputs") == std::vector<double>{0, 1, 1, 0, 1, 2, 1, 0, 3});
    CHECK(source->remarks().front() ==
          "filled 1 empty cell with the previous value in its column and series");
}

TEST_CASE("tables that are none are refused with their line") {
    test::ScratchDir const scratch;
    auto const why = [&](std::string const& text) {
        write_text_durably(scratch / "x.csv", text);
        return std::string(test::error_of([&] {
                               series_source({.source = scratch / "x.csv", .target = "b"});
                           }).what());
    };
    CHECK(why("a,b\n1,2\n3\n").find("line 3: it has 1 field,") != std::string::npos);
    CHECK(why("a,b\n\"1,2\n").find("a quote is not closed") != std::string::npos);
    CHECK(why("a,b\n\"1\"x,2\n").find("line 2") != std::string::npos);
    CHECK(why("a,b\n").find("no rows") != std::string::npos);
    CHECK(why("").find("empty") != std::string::npos);
    CHECK(why("a,c\n1,2\n").find("--target b: ") != std::string::npos);
    CHECK(why("a,c\n1,2\n").find("no such column; its columns are a, c") != std::string::npos);
}

TEST_CASE("values far from zero are normalised by their own spread") {
    test::ScratchDir const scratch;
    // Milliseconds since 1970, a second apart, whose squares have no digits left for the distances.
    constexpr int rows = 20000;
    constexpr double first = 1.7e12;
    std::string table = "time,price,label\n";
    for (int i = 0; i < rows; ++i) {
        table +=
            concat(fixed(first + 1000.0 * i, 0), ",", i % 2 == 0 ? "4e8" : "400000001", ",x\n");
    }
    write_text_durably(scratch / "t.csv", table);
    test::import_to(
        scratch / "t.h5",
        *series_source({.source = scratch / "t.csv", .target = "label", .doubles = true}));
    auto const file = h5::File::open(scratch / "t.h5");
    auto const mean = file.number_attribute("/", "mean").value();
    auto const std = file.number_attribute("/", "std").value();
    CHECK(mean[0] == Approx(first + 500.0 * (rows - 1)).epsilon(1e-15));
    CHECK(std[0] == Approx(1000 * std::sqrt((1.0 * rows * rows - 1) / 12)).epsilon(1e-12));
    CHECK(mean[1] == Approx(4e8 + 0.5).epsilon(1e-15));
    CHECK(std[1] == Approx(0.5).epsilon(1e-7));
}

TEST_CASE("times have fractions and offsets from UTC, and nothing else behind them") {
    test::ScratchDir const scratch;
    auto const import = [&](std::string const& time) {
        write_text_durably(scratch / "t.csv", concat("Date,x\n", time, ",1\n"));
        test::import_to(scratch / "t.h5",
                        *series_source({.source = scratch / "t.csv", .time = "Date"}));
    };
    constexpr double day = 1577836800; // 2020-01-01
    for (auto const& [text, seconds] : {std::pair{"2020-01-01", day},
                                        {"2020-1-1 9:30", day + 34200},
                                        {"2020-01-01T00:00:00Z", day},
                                        {"2020-01-01T00:00:00+02:00", day - 7200},
                                        {"2020-01-01T00:00:00+0530", day - 19800},
                                        {"2020-01-01 00:00:00 -01:00", day + 3600},
                                        {"2020-01-01 00:00-0100", day + 3600},
                                        {"2020-01-01 00:00:00+02", day - 7200},
                                        {"2020-01-01 09:30:00.750", day + 34200.75},
                                        {"2020-01-01T09:30:00.5Z", day + 34200.5},
                                        {"-1.5", -1.5}}) {
        CAPTURE(text);
        import(text);
        CHECK(values_of(scratch / "t.h5", "time") == std::vector<double>{seconds});
    }
    for (std::string const text :
         {"2020-01-01 01:00:00 PM", "2020-01-01 00:00 xyz", "2020-01-01Z", "2020-02-30",
          "2020-01-01 00:00:00+25:00", "2020-01-01 00:00:00+01:60", "2020-01-01 00:00 +",
          "2020-01-01 00:00:00.", "2020-01-01 24:00", "2020-01-01 00:00:00ZZ", "2020-01-01T",
          "2020-01-01 00:00:00+2", "01.01.2020", "12:00", "inf"}) {
        CAPTURE(text);
        auto const error = test::error_of([&] { import(text); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, concat("is not a time: ", text)));
    }
}

TEST_CASE("a number that f32 would make 0 is refused, and f64 keeps it") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "t.csv", "a,k\n1,x\n1e-50,y\n");
    auto options = SeriesImport{.source = scratch / "t.csv", .target = "k"};
    auto const error =
        test::error_of([&] { test::import_to(scratch / "t.h5", *series_source(options)); });
    CHECK(error.code() == ExitCode::data);
    CHECK(test::says(error, "line 3: the value in column a is too small for f32: 1e-50"));
    options.doubles = true;
    test::import_to(scratch / "t.h5", *series_source(options));
    CHECK(values_of(scratch / "t.h5", "inputs") == std::vector<double>{1, 1e-50});
    write_text_durably(scratch / "t.csv", "a,k\n0,x\n1e-40,y\n"); // a denormal
    options.doubles = false;
    test::import_to(scratch / "t.h5", *series_source(options));
    CHECK(values_of(scratch / "t.h5", "inputs")[1] == Approx(1e-40).epsilon(1e-3));
}

TEST_CASE("a part takes no room for classes that do not occur in it") {
    test::ScratchDir const scratch;
    ImportForm form;
    form.fields = {{"targets", h5::Type::i64, {}, false}};
    form.class_names.resize(100'000);
    ImportPart part(form);
    std::vector<std::byte> const label(8);
    part.add(form, {{label}, 99'999});
    write_part(scratch / "part", 1, part);
    CHECK(std::filesystem::file_size(scratch / "part") < 200);
    auto const again = read_part(scratch / "part", 1, form);
    CHECK(again.value().class_counts == std::map<std::int64_t, std::int64_t>{{99'999, 1}});
}

TEST_CASE("a table may have 100,000 columns") {
    test::ScratchDir const scratch;
    std::string names;
    std::string row;
    for (int c = 0; c < 100'000; ++c) {
        names += concat("c", c, ",");
        row += concat(c % 10, ",");
    }
    write_text_durably(scratch / "wide.csv", concat(names, "y\n", row, "a\n", row, "b\n"));
    test::import_to(scratch / "wide.h5",
                    *series_source({.source = scratch / "wide.csv", .target = "y"}));
    auto const file = h5::File::open(scratch / "wide.h5");
    CHECK(file.info("inputs").shape == h5::Shape{2, 100'000});
    CHECK(file.texts_attribute("/", "columns").value().back() == "c99999");
    write_text_durably(scratch / "twice.csv", concat(names, "c7,y\n", row, "1,a\n"));
    auto const twice =
        test::error_of([&] { series_source({.source = scratch / "twice.csv", .target = "y"}); });
    CHECK(twice.code() == ExitCode::data);
    CHECK(test::says(twice, "names the column c7 twice"));
}
