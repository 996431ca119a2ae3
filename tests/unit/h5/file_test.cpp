#include "base/file.hpp"
#include "h5/appender.hpp"
#include "h5/element_type.hpp"
#include "h5/offsets.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include "catch.hpp"
#include "error_of.hpp"
#include "file_size_limit.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using h5::Shape;
using h5::Type;

namespace {

std::vector<float> counting(std::size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0F);
    return values;
}

} // namespace

TEST_CASE("every element type is written, told and read back") {
    test::ScratchDir const scratch;
    std::array const types{Type::u8,  Type::i16, Type::i32, Type::i64,
                           Type::u64, Type::f16, Type::f32, Type::f64};
    std::array<double, 3> const values{1, 2, 200}; // any of them holds these
    {
        auto file = h5::File::create(scratch / "f.h5");
        for (auto const type : types) {
            auto const name = "group/" + h5::name_of(type);
            file.create_dataset(name, type, {3});
            file.write(name, Type::f64, values); // HDF5 converts
        }
        file.close();
    }
    auto const file = h5::File::open(scratch / "f.h5");
    for (auto const type : types) {
        auto const name = "group/" + h5::name_of(type);
        CAPTURE(name);
        auto const info = file.info(name);
        CHECK(info.type == type);
        CHECK(h5::type_named(h5::name_of(type)) == type);
        CHECK(info.shape == Shape{3});
        std::array<double, 3> back{};
        file.read(name, Type::f64, back);
        CHECK(back == values);
    }
    CHECK_FALSE(h5::type_named("f8").has_value());
    CHECK(file.datasets().size() == types.size());
}

TEST_CASE("files of the same content have the same bytes, whenever they are made") {
    test::ScratchDir const scratch;
    auto const made = [&](char const* name) {
        auto file = h5::File::create(scratch / name);
        file.create_dataset("a/b/values", Type::f32, {3});
        file.write("a/b/values", Type::f32, counting(3));
        file.write_text("a/c/text", "text");
        file.create_group("d/e");
        file.close();
        return read_text(scratch / name);
    };
    auto const first = made("first.h5");
    std::this_thread::sleep_for(std::chrono::milliseconds(1100)); // HDF5's times are whole seconds
    CHECK(made("second.h5") == first);
}

TEST_CASE("the offset is where the bytes lie, with a user block before HDF5's own or without") {
    test::ScratchDir const scratch;
    auto const values = counting(5000);
    auto const bytes = std::as_bytes(std::span(values));
    for (std::uint64_t const user_block : {0, 512, 4096, 65536}) {
        CAPTURE(user_block);
        auto const path = scratch / ("block-" + std::to_string(user_block) + ".h5");
        // HDF5 wants user blocks in whole alignments.
        auto file = h5::File::create(path, {.user_block = user_block, .alignment = 512});
        file.create_dataset("before", Type::u8, {3});
        file.create_dataset("values", Type::f32, {50, 100});
        file.write("values", Type::f32, values);
        file.close();

        auto const opened = h5::File::open(path);
        auto const info = opened.info("values");
        REQUIRE(info.offset.has_value());
        CHECK(info.contiguous);
        CHECK(*info.offset >= user_block);
        std::vector<std::byte> raw(bytes.size());
        File::open_read(path).read_at(*info.offset, raw);
        CHECK(std::equal(raw.begin(), raw.end(), bytes.begin()));
        std::vector<float> read(5000);
        opened.read("values", Type::f32, read);
        CHECK(read == values);
    }
}

TEST_CASE("a new file takes the place of a link, and not that of the file it leads to") {
    test::ScratchDir const scratch;
    write_text_durably(scratch / "of another", "text");
    std::filesystem::create_symlink(scratch / "of another", scratch / "f.h5");
    auto file = h5::File::create(scratch / "f.h5");
    file.create_dataset("x", Type::u8, {3});
    file.close();
    CHECK_FALSE(std::filesystem::is_symlink(scratch / "f.h5"));
    CHECK(read_text(scratch / "of another") == "text");
    CHECK(h5::File::open(scratch / "f.h5").info("x").shape == Shape{3});
}

TEST_CASE("large datasets begin on the alignment") {
    test::ScratchDir const scratch;
    auto file = h5::File::create(scratch / "f.h5", {.alignment = 8192});
    for (std::string const name : {"a", "b", "c"}) {
        file.create_dataset(name, Type::u8, {9001});
        CHECK(file.info(name).offset.value() % 8192 == 0);
    }
}

TEST_CASE("a view shows a part of a flat array under its own name and shape") {
    test::ScratchDir const scratch;
    auto const values = counting(100);
    auto file = h5::File::create(scratch / "f.h5");
    file.create_dataset("state/flat", Type::f32, {100});
    file.write("state/flat", Type::f32, values);
    file.create_view({"model/conv/weight", "/state/flat", 10, {4, 5}}, Type::f32);
    file.create_view({"model/conv/scale", "/state/flat", 99, {}}, Type::f32);
    file.close();

    auto const opened = h5::File::open(scratch / "f.h5");
    auto const info = opened.info("model/conv/weight");
    CHECK(info.shape == Shape{4, 5});
    CHECK(info.type == Type::f32);
    CHECK_FALSE(info.contiguous); // its bytes are the flat array's
    CHECK_FALSE(info.offset.has_value());
    std::vector<float> weight(20);
    opened.read("model/conv/weight", Type::f32, weight);
    CHECK(weight == std::vector<float>(values.begin() + 10, values.begin() + 30));
    float scale = 0;
    opened.read("model/conv/scale", Type::f32, std::span(&scale, 1));
    CHECK(scale == 100);
}

TEST_CASE("rows of an array of three dimensions are read and converted") {
    test::ScratchDir const scratch;
    std::vector<std::int16_t> values(7 * 2 * 3);
    std::iota(values.begin(), values.end(), std::int16_t{-5});
    auto file = h5::File::create(scratch / "f.h5");
    file.create_dataset("x", Type::i16, {7, 2, 3});
    file.write("x", Type::i16, values);
    std::vector<float> rows(3 * 6);
    file.read_rows("x", Type::f32, {2, 3}, std::as_writable_bytes(std::span(rows)));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK(rows[i] == static_cast<float>(values[12 + i]));
    }
    CHECK(test::error_of([&] {
              file.read_rows("x", Type::f32, {5, 3}, std::as_writable_bytes(std::span(rows)));
          }).code() == ExitCode::data);
}

TEST_CASE("values that the wanted type cannot hold are refused, however they are read") {
    test::ScratchDir const scratch;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    auto file = h5::File::create(scratch / "f.h5");
    auto const keep = [&](std::string const& name, double value) {
        file.create_dataset(name, Type::f64, {2});
        file.write(name, Type::f64, std::array{1.0, value});
    };
    keep("large", 300);
    keep("negative", -1);
    keep("huge", 1e39);
    keep("infinite", infinity);
    keep("fraction", 7.5);
    auto const read = [&](std::string const& name, Type type) {
        std::vector<std::byte> bytes(2 * h5::size_of(type));
        file.read_rows(name, type, {0, 2}, bytes);
        return bytes;
    };
    for (auto const& [name, type] : {std::pair("large", Type::u8), std::pair("negative", Type::u8),
                                     std::pair("huge", Type::f32), std::pair("infinite", Type::i32),
                                     std::pair("fraction", Type::u8)}) {
        CAPTURE(name);
        auto const refused = [&, type = type](auto&& call) {
            auto const error = test::error_of(call);
            return error.code() == ExitCode::data &&
                   error.text().why == "one of its values does not fit " + h5::name_of(type);
        };
        std::vector<std::byte> all(2 * h5::size_of(type));
        CHECK(refused([&] { read(name, type); }));
        CHECK(refused([&] { file.read(name, type, all); }));
        CHECK(refused([&] { file.read_part(name, type, 0, all); }));
    }
    auto const infinite = read("infinite", Type::f32);
    CHECK(reinterpret_cast<float const*>(infinite.data())[1] ==
          std::numeric_limits<float>::infinity());
}

TEST_CASE("parts of a flat array are written and read by position") {
    test::ScratchDir const scratch;
    auto file = h5::File::create(scratch / "f.h5");
    file.create_dataset("x", Type::f32, {10});
    std::vector<float> values(10, 0.0F);
    file.write("x", Type::f32, values);
    std::array const part{7.0F, 8.0F, 9.0F};
    auto const bytes = std::as_bytes(std::span(part));
    std::vector<h5::Part> const parts{{4, bytes.first(4)}, {5, bytes.subspan(4)}};
    auto const transfer = file.write_parts("x", Type::f32, parts, 2);
    CHECK_FALSE(transfer.collective); // one process wrote
    file.write_parts("x", Type::f32, {}, 1);
    std::array<float, 5> back{};
    file.read_part("x", Type::f32, 3, std::as_writable_bytes(std::span(back)));
    CHECK(back == std::array{0.0F, 7.0F, 8.0F, 9.0F, 0.0F});
    CHECK(h5::File::calls_for(0) == 0);
    CHECK(h5::File::calls_for(1) == 1);
    CHECK(h5::File::calls_for(std::uint64_t{256} << 20) == 1);
    CHECK(h5::File::calls_for((std::uint64_t{256} << 20) + 1) == 2);
}

TEST_CASE("attributes come back as what they are, and as nothing else") {
    test::ScratchDir const scratch;
    std::vector<std::string> const names{"cat", "", "a longer name",
                                         "Stra\xc3\x9f"
                                         "e"};
    {
        auto file = h5::File::create(scratch / "f.h5");
        file.create_dataset("g/x", Type::u8, {1});
        file.set_attribute("/", "text", std::string("some text"));
        file.set_attribute("/", "empty", std::string());
        file.set_attribute("g", "number", std::int64_t{-42});
        file.set_attribute("g/x", "numbers", std::vector<double>{0.1, -1e300});
        file.set_attribute("/", "names", names);
        file.set_attribute("/", "text", std::string("another text")); // replaces
        file.close();
    }
    auto const file = h5::File::open(scratch / "f.h5");
    CHECK(file.text_attribute("/", "text") == "another text");
    CHECK(file.text_attribute("/", "empty") == "");
    CHECK(file.integer_attribute("g", "number") == -42);
    CHECK(file.number_attribute("g/x", "numbers") == std::vector<double>{0.1, -1e300});
    CHECK(file.texts_attribute("/", "names") == names);
    CHECK(file.attribute_names("/") == std::vector<std::string>{"empty", "names", "text"});
    CHECK_FALSE(file.text_attribute("/", "none").has_value());
    CHECK_FALSE(file.integer_attribute("/", "text").has_value());
    CHECK_FALSE(file.number_attribute("/", "text").has_value());
    CHECK_FALSE(file.text_attribute("g", "number").has_value());
}

TEST_CASE("texts of any length are kept") {
    test::ScratchDir const scratch;
    std::string const text = std::string(200'000, 'x') + "\nlast line\n"; // no attribute holds it
    auto file = h5::File::create(scratch / "f.h5");
    file.write_text("record/deck", text);
    file.write_text("record/nothing", "");
    CHECK(file.read_text("record/deck") == text);
    CHECK(file.read_text("record/nothing").empty());
    file.create_dataset("numbers", Type::f32, {2});
    CHECK(test::error_of([&] { return file.read_text("numbers"); }).code() == ExitCode::data);
}

TEST_CASE("what is there and what is not is told without an error") {
    test::ScratchDir const scratch;
    auto file = h5::File::create(scratch / "f.h5");
    file.create_dataset("a/b/c", Type::u8, {1});
    CHECK(file.exists("a"));
    CHECK(file.exists("a/b/c"));
    CHECK_FALSE(file.exists("a/x/c"));
    CHECK_FALSE(file.exists("b"));
    CHECK(test::error_of([&] { return file.info("a/x"); }).code() == ExitCode::data);
}

TEST_CASE("files that cannot be opened or made carry their exit codes") {
    test::ScratchDir const scratch;
    auto const open_code = [&](std::string const& name) {
        return test::error_of([&] { return h5::File::open(scratch / name); }).code();
    };
    CHECK(open_code("none.h5") == ExitCode::no_input);
    write_text_durably(scratch / "text.h5", "this is no HDF5 file");
    CHECK(open_code("text.h5") == ExitCode::data);
    {
        auto file = h5::File::create(scratch / "cut.h5");
        file.create_dataset("x", Type::u8, {100'000});
        file.close();
    }
    std::filesystem::resize_file(scratch / "cut.h5", 50'000);
    CHECK(open_code("cut.h5") == ExitCode::data);
    CHECK(test::error_of([&] { return h5::File::create(scratch / "no/such/place.h5"); }).code() ==
          ExitCode::cannot_create);
}

TEST_CASE("values that do not fit their dataset are refused before HDF5 touches them") {
    test::ScratchDir const scratch;
    auto const values = counting(12);
    std::vector<float> other(11);
    auto file = h5::File::create(scratch / "f.h5");
    file.create_dataset("flat", Type::f32, {12});
    file.create_dataset("one", Type::f32, {});
    CHECK(test::error_of([&] { file.write("flat", Type::f32, other); }).code() == ExitCode::data);
    file.write("flat", Type::f32, values);
    CHECK(test::error_of([&] { file.read("flat", Type::f32, other); }).code() == ExitCode::data);
    // The bytes of 12 numbers of another type are not 12 numbers.
    CHECK(test::error_of([&] { file.read("flat", Type::f64, std::vector<float>(12)); }).code() ==
          ExitCode::data);
    auto const bytes = std::as_writable_bytes(std::span(other));
    auto const rows = [&](char const* name, h5::File::Rows which) {
        return test::error_of([&] { file.read_rows(name, Type::f32, which, bytes); }).code();
    };
    CHECK(rows("flat", {2, 11}) == ExitCode::data);
    CHECK(rows("flat", {0, 12}) == ExitCode::data);
    CHECK(rows("flat", {~std::uint64_t{0}, 2}) == ExitCode::data);
    CHECK(rows("one", {0, 1}) == ExitCode::data); // a scalar has no rows
    auto const far = test::error_of([&] {
        file.read_rows("flat", Type::f32, {~std::uint64_t{0}, 2}, bytes.first(8));
    });
    CHECK(test::says(far, "has only 12 rows")); // a sum that starts over at 0 would not
    CHECK(test::error_of([&] { file.read_part("flat", Type::f32, 2, bytes); }).code() ==
          ExitCode::data);
    std::array const part{h5::Part{2, bytes}};
    CHECK_THROWS_AS(file.write_parts("flat", Type::f32, part, 1), Error);
}

TEST_CASE("a shape with more elements than can be counted is no small one") {
    auto const large = std::uint64_t{1} << 32;
    CHECK(test::error_of([&] { return h5::elements({large, large}); }).code() == ExitCode::data);
}

TEST_CASE("offsets are those of rows that are there") {
    test::ScratchDir const scratch;
    auto file = h5::File::create(scratch / "f.h5");
    auto const offsets = [&](std::string const& name, std::vector<std::int64_t> const& values) {
        file.create_dataset(name, Type::i64, {values.size()});
        file.write(name, Type::i64, values);
        return [&file, name] { return h5::read_offsets(file, name, 7); };
    };
    CHECK(offsets("good", {0, 3, 3, 7})().size() == 4);
    for (auto const& [name, values] :
         std::vector<std::pair<char const*, std::vector<std::int64_t>>>{{"none", {}},
                                                                        {"one", {0}},
                                                                        {"late", {1, 7}},
                                                                        {"short", {0, 6}},
                                                                        {"long", {0, 8}},
                                                                        {"back", {0, 5, 4, 7}},
                                                                        {"below", {0, -1, 7}}}) {
        CAPTURE(name);
        CHECK(test::error_of(offsets(name, values)).code() == ExitCode::data);
    }
}

TEST_CASE("a failed write is no damaged file, whatever the dataset is called") {
    test::ScratchDir const scratch;
    auto const values = counting(1 << 20);
    for (std::string const name : {"targets", "readout", "open", "x"}) {
        for (bool const compressed : {false, true}) {
            CAPTURE(name, compressed);
            auto file = h5::File::create(scratch / "f.h5");
            if (compressed) {
                file.create_dataset(name, Type::f32, {values.size()},
                                    {.chunk_rows = 1000, .deflate = 1, .checksums = true});
            } else {
                file.create_dataset(name, Type::f32, {values.size()});
            }
            test::FileSizeLimit const limit(100'000);
            auto const error = test::error_of([&] {
                file.write(name, Type::f32, values);
                file.close();
            });
            CHECK(error.code() == ExitCode::io);
            CHECK(test::says(error, "File too large"));
        }
    }
}

TEST_CASE("what an appender could not write is an error at the close at the latest") {
    test::ScratchDir const scratch;
    std::vector<float> values(40'000); // nothing that deflates well
    std::mt19937 numbers(7);
    std::generate(values.begin(), values.end(), [&] { return static_cast<float>(numbers()); });
    auto const bytes = std::as_bytes(std::span(values));
    // Up to the size that is enough: what fits is whole, everything else an error.
    std::size_t failed = 0;
    for (std::uint64_t room = 0; room < 200'000; room += 9'973) {
        CAPTURE(room);
        auto const path = scratch / std::to_string(room);
        auto const write = [&] {
            test::FileSizeLimit const limit(room);
            auto file = h5::File::create(path);
            file.create_dataset("x", Type::f32, {values.size()},
                                {.chunk_rows = 3'000, .deflate = 1, .checksums = true});
            h5::Appender rows(file, "x", Type::f32);
            for (std::size_t at = 0; at < bytes.size(); at += 1'000) {
                rows.append(bytes.subspan(at, 1'000));
            }
            rows.close();
            file.close();
        };
        try {
            write();
        } catch (Error const& error) {
            CHECK(error.code() == ExitCode::io);
            ++failed;
            continue;
        }
        std::vector<float> back(values.size());
        h5::File::open(path).read("x", Type::f32, back);
        CHECK(back == values);
    }
    CHECK(failed > 3);
    CHECK(failed < 21);
}

TEST_CASE("an appender takes whole rows, as many as there are") {
    test::ScratchDir const scratch;
    auto const values = counting(12);
    auto const bytes = std::as_bytes(std::span(values));
    auto file = h5::File::create(scratch / "f.h5");
    file.create_dataset("x", Type::f32, {4, 3});
    h5::Appender rows(file, "x", Type::f32);
    CHECK_THROWS_AS(rows.append(bytes.first(10)), Error);
    rows.append(bytes.first(24));
    CHECK_THROWS_AS(rows.append(bytes.first(36)), Error);
    CHECK_THROWS_AS(rows.close(), Error);
    rows.append(bytes.subspan(24));
    CHECK_NOTHROW(rows.close());
    std::vector<float> back(12);
    file.read("x", Type::f32, back);
    CHECK(back == values);
}
