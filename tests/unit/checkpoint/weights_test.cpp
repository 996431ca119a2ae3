#include "base/file.hpp"
#include "checkpoint/model_file.hpp"
#include "checkpoint/safetensors.hpp"

#include <array>
#include <cstring>
#include <fstream>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;
using checkpoint::open_weights;

namespace {

void write_file(std::filesystem::path const& path, std::string const& header,
                std::vector<std::byte> const& data) {
    std::uint64_t const length = header.size();
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<char const*>(&length), sizeof(length));
    out << header;
    out.write(reinterpret_cast<char const*>(data.data()),
              static_cast<std::streamsize>(data.size()));
}

template <class T>
std::vector<T> values(checkpoint::Weights const& weights, std::string const& name) {
    auto const* const entry = weights.find(name);
    REQUIRE(entry != nullptr);
    std::vector<T> result(entry->bytes() / sizeof(T));
    weights.read(*entry, std::as_writable_bytes(std::span(result)));
    return result;
}

} // namespace

TEST_CASE("a model goes to safetensors and back to HDF5 with every bit") {
    test::ScratchDir const scratch;
    std::array<float, 6> const weight{1, -2, 3.5F, 1e-40F, 5, 6};
    std::int64_t const batches = 11;
    checkpoint::write_model(
        scratch / "best.h5",
        {{"model/conv/1/weight", h5::Type::f32, {2, 3}, std::as_bytes(std::span(weight))},
         {"model/norm/batches", h5::Type::i64, {1}, std::as_bytes(std::span(&batches, 1))}},
        {{{"step", 5}}, {}, "", "", {}});
    checkpoint::write_safetensors(scratch / "a.safetensors", *open_weights(scratch / "best.h5"));
    CHECK(checkpoint::is_safetensors(scratch / "a.safetensors"));
    CHECK_FALSE(checkpoint::is_safetensors(scratch / "best.h5"));

    auto const read = open_weights(scratch / "a.safetensors");
    REQUIRE(read->entries().size() == 2);
    CHECK(read->find("conv.1.weight")->shape == h5::Shape{2, 3});
    CHECK(values<float>(*read, "conv.1.weight") ==
          std::vector<float>(weight.begin(), weight.end()));
    CHECK(values<std::int64_t>(*read, "norm.batches") == std::vector<std::int64_t>{11});
    CHECK(read->find("none") == nullptr);

    checkpoint::write_model(scratch / "again.h5", *read);
    auto const again = open_weights(scratch / "again.h5");
    CHECK(values<float>(*again, "conv.1.weight") ==
          std::vector<float>(weight.begin(), weight.end()));
}

TEST_CASE("other types of numbers are widened") {
    test::ScratchDir const scratch;
    std::array<std::uint16_t, 4> const halves{0x3c00, 0xc000, 0x3f80, 0xc020};
    auto const words = std::as_bytes(std::span(halves));
    std::vector<std::byte> data(words.begin(), words.end());
    data.push_back(std::byte{0});
    write_file(scratch / "x.safetensors",
               R"({"__metadata__":{"a":"b"},"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
               R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]},)"
               R"("u":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})",
               data);
    auto const file = open_weights(scratch / "x.safetensors");
    CHECK(values<float>(*file, "h") == std::vector<float>{1, -2});
    CHECK(values<float>(*file, "b") == std::vector<float>{1, -2.5F});
    CHECK(values<std::int64_t>(*file, "u") == std::vector<std::int64_t>{0});
}

TEST_CASE("a damaged safetensors file is refused by name") {
    test::ScratchDir const scratch;
    auto const path = scratch / "x.safetensors";
    auto const code = [&](std::string const& header, std::size_t bytes = 8) {
        write_file(path, header, std::vector<std::byte>(bytes));
        auto const error = test::error_of([&] { checkpoint::open_safetensors(path); });
        CHECK(test::says(error, path.string()));
        return error.code();
    };
    auto const one = [](std::string const& type, std::string const& shape,
                        std::string const& bounds) {
        return R"({"w":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" +
               bounds + "}}";
    };
    write_file(path, one("F32", "[2]", "[0,8]"), std::vector<std::byte>(8));
    CHECK(checkpoint::open_safetensors(path)->entries().size() == 1);

    CHECK(code(one("F32", "[2]", "[0,8]"), 7) == ExitCode::data); // cut short
    CHECK(code(one("F32", "[2]", "[0,8]"), 9) == ExitCode::data); // a byte of no tensor
    CHECK(code(one("F32", "[3]", "[0,8]")) == ExitCode::data);
    CHECK(code(one("F32", "[2]", "[8,0]")) == ExitCode::data);
    CHECK(code(one("F32", "[4294967296,4294967296]", "[0,0]")) == ExitCode::data);
    CHECK(code(one("F32", "[-2]", "[0,8]")) == ExitCode::data);
    CHECK(code(one("F32", "\"x\"", "[0,8]")) == ExitCode::data);
    CHECK(code(one("F8_E4M3", "[8]", "[0,8]")) == ExitCode::data);
    CHECK(code(R"({"w":3})") == ExitCode::data);
    CHECK(code(R"({"w":)") == ExitCode::data);
    CHECK(code("[]") == ExitCode::data);
    std::uint64_t const absurd = ~std::uint64_t{0};
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<char const*>(&absurd), sizeof(absurd));
    CHECK(test::error_of([&] { checkpoint::open_safetensors(path); }).code() == ExitCode::data);

    // What is left of it is no damaged checkpoint.
    for (auto const& rest : {std::string("\x40\0\0\0\0", 5), std::string("\x40\0\0\0\0\0\0\0{", 9),
                             std::string("\1\2\3\4\5\6\7\x80\x81\x82\x83\x84\x85")}) {
        write_text_durably(path, rest);
        auto const error = test::error_of([&] { checkpoint::open_weights(path); });
        CHECK(test::says(error, "is not a complete safetensors file"));
    }
}

TEST_CASE("an index joins the tensors of several files, and a directory stands for it") {
    test::ScratchDir const scratch;
    auto const index = scratch / "model.safetensors.index.json";
    auto const shard = [&](std::string const& file, std::string const& tensor, float value) {
        auto const data = std::as_bytes(std::span(&value, 1));
        write_file(scratch / file,
                   R"({")" + tensor + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                   {data.begin(), data.end()});
    };
    auto const refused = [&](std::string const& text) {
        std::ofstream(index) << text;
        return test::error_of([&] { open_weights(index); });
    };
    CHECK(test::error_of([&] { checkpoint::safetensors_of(scratch / ""); }).code() ==
          ExitCode::no_input);
    shard("model.safetensors", "a", 1);
    CHECK(checkpoint::safetensors_of(scratch / "") == scratch / "model.safetensors");
    shard("1.safetensors", "a", 2);
    shard("2.safetensors", "b", 3);
    std::ofstream(index) << R"({"metadata":{},"weight_map":)"
                         << R"({"b":"2.safetensors","a":"1.safetensors"}})";
    auto const both = test::error_of([&] { checkpoint::safetensors_of(scratch / ""); });
    CHECK(both.code() == ExitCode::usage);
    CHECK(test::says(both, "has both model.safetensors and model.safetensors.index.json"));
    CHECK(checkpoint::safetensors_of(index) == index);
    std::filesystem::remove(scratch / "model.safetensors");
    CHECK(checkpoint::safetensors_of(scratch / "") == index);
    CHECK(checkpoint::is_safetensors(index));
    auto const read = open_weights(index);
    REQUIRE(read->entries().size() == 2);
    CHECK(values<float>(*read, "a") == std::vector<float>{2});
    CHECK(values<float>(*read, "b") == std::vector<float>{3});

    auto const missing = refused(R"({"weight_map":{"a":"3.safetensors"}})");
    CHECK(missing.code() == ExitCode::no_input);
    CHECK(test::says(missing, "3.safetensors"));
    auto const elsewhere = refused(R"({"weight_map":{"b":"1.safetensors"}})");
    CHECK(elsewhere.code() == ExitCode::data);
    CHECK(test::says(elsewhere, "no tensor b"));
    for (auto const* const text :
         {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})",
          R"({"weight_map":{"a":"../1.safetensors"}})", R"({"weight_map":{"a":".."}})",
          R"({"weight_map":{"a":"/1.safetensors"}})",
          R"({"weight_map":{"a":"1.safetensors","a":"model.safetensors"}})",
          R"({"weight_map":{"b":"2.safetensors"},"weight_map":{"a":"1.safetensors"}})"}) {
        CAPTURE(text);
        auto const error = refused(text);
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, index.string()));
    }
}

TEST_CASE("weights of a damaged file are never read, whichever byte it is") {
    test::ScratchDir const scratch;
    auto const path = scratch / "best.h5";
    std::array<float, 4> const values{1, 2, 3, 4};
    checkpoint::write_model(
        path, {{"model/weight", h5::Type::f32, {4}, std::as_bytes(std::span(values))}}, {});
    auto const file = File::open_write(path);
    CHECK_NOTHROW(open_weights(path));
    std::vector<std::uint64_t> missed;
    for (std::uint64_t at = 0; at < file.size(); ++at) {
        std::array<std::byte, 1> value{};
        file.read_at(at, value);
        auto const right = value;
        value[0] ^= std::byte{1} << (at % 8);
        file.write_at(at, value);
        try {
            open_weights(path);
            missed.push_back(at);
        } catch (Error const& error) {
            if (error.code() != ExitCode::data) {
                missed.push_back(at);
            }
        }
        file.write_at(at, right);
    }
    CHECK(missed.empty());
    CHECK_NOTHROW(open_weights(path));
}
