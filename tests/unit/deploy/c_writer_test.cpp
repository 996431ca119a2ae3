#include "deploy/c_loops.hpp"
#include "deploy/c_values.hpp"
#include "deploy/c_writer.hpp"
#include "deploy/onnx_writer.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using namespace lockstep::deploy;

TEST_CASE("numbers are read back as they were") {
    std::mt19937 dice(1);
    for (int i = 0; i < 1000; ++i) {
        auto const bits = static_cast<std::uint32_t>(dice());
        float value = 0;
        std::memcpy(&value, &bits, sizeof value);
        if (std::isfinite(value)) {
            auto const text = c_number(static_cast<double>(value), Element::f32);
            CHECK(text.back() == 'f');
            CHECK(std::strtof(text.c_str(), nullptr) == value);
        }
    }
    CHECK(c_number(1, Element::f32) == "1.0f");
    CHECK(c_number(-std::numeric_limits<double>::infinity(), Element::f32) == "-INFINITY");
    CHECK(c_number(7, Element::i64) == "INT64_C(7)");
}

TEST_CASE("a file's name becomes one of C") {
    CHECK(c_name("net") == "net");
    CHECK(c_name("my-net.v2") == "my_net_v2");
    CHECK(c_name("2net") == "model_2net");
    CHECK(c_name("").size() > 1);
    CHECK(c_name("n\xC3\xA9t") == "n__t");
}

TEST_CASE("loops that run through as one are one") {
    CHECK(loops({2, 3, 4}, {{"y", {12, 4, 1}}, {"x", {12, 4, 1}}}, "{0} = {1};") ==
          "    for (long i0 = 0; i0 < 24; ++i0)\n        y[i0] = x[i0];\n");
    CHECK(
        loops({2, 1, 4}, {{"y", {4, 4, 1}}, {"x", {1, 0, 2}, 3}}, "{0} = {1};") ==
        "    for (long i0 = 0; i0 < 2; ++i0)\n        for (long i1 = 0; i1 < 4; ++i1)\n            "
        "y[i0 * 4 + i1] = x[3 + i0 + i1 * 2];\n");
    CHECK(loops({}, {{"y", {}}}, "{0} = 1;") == "    y[0] = 1;\n");
}

TEST_CASE("a layer whose sums may leave 32 bits is refused") {
    Graph graph;
    constexpr std::int64_t inputs = 70000;
    auto const x = graph.input("inputs", Element::f32, {{1, true}, {inputs, false}});
    auto const bytes = graph.add("QuantizeLinear", {x}, {Element::u8, graph[x].shape},
                                 {{"scale", 1.0}, {"zero", std::int64_t{0}}});
    auto const weights = graph.constant("w", Element::i8, fixed_shape({1, inputs}),
                                        std::vector<std::byte>(inputs, std::byte{127}));
    graph.set_output(graph.add(
        "QuantizedGemm", {bytes, weights, graph.reals({1}, {1}), graph.reals({0}, {1})},
        {Element::f32, {{1, true}, {1, false}}}, {{"scale", 1.0}, {"zero", std::int64_t{0}}}));
    CHECK(test::code_of([&] { c_source(graph, "net"); }) == ExitCode::usage);
    CHECK(onnx_file(graph).size() > static_cast<std::size_t>(inputs));
}

TEST_CASE("an operator without a form in C is refused by its name") {
    Graph graph;
    Shape const shape{{1, true}, {2, false}};
    auto const x = graph.input("inputs", Element::f32, shape);
    graph.set_output(graph.add("Einsum", {x}, {Element::f32, shape}));
    auto const error = test::error_of([&] { c_source(graph, "net"); });
    CHECK(error.code() == ExitCode::usage);
    CHECK(test::says(error, "Einsum"));
}

TEST_CASE("several inputs have pointers and sizes of their own, with names that fit") {
    Graph graph;
    Shape const shape{{1, true}, {2, false}};
    auto const a = graph.input("scene/Images", Element::f32, shape);
    auto const b = graph.input("scene_images", Element::u8, shape);
    graph.input("2nd", Element::i64, {{1, true}});
    auto const reals = graph.add("Cast", {b}, {Element::f32, shape});
    graph.set_output(graph.add("Add", {a, reals}, {Element::f32, shape}));
    auto const made = c_source(graph, "net");
    CHECK(made.source.find("int net_run(size_t samples, const float *in_scene_images, "
                           "const uint8_t *in_scene_images_2, const int64_t *in_model_2nd, "
                           "float *outputs)") != std::string::npos);
    CHECK(made.source.find("(void)input2;") != std::string::npos);
    CHECK(made.source.find("(void)input1;") == std::string::npos);
    CHECK(made.header.find("#define NET_INPUTS_MODEL_2ND 1\n") != std::string::npos);
    CHECK(made.fortran.find("integer(c_int8_t), intent(in) :: in_scene_images_2(*)") !=
          std::string::npos);
    auto const runner = c_runner(
        {{"scene/Images", Element::f32}, {"scene_images", Element::u8}, {"2nd", Element::i64}},
        "net");
    CHECK(runner.find("net_run(samples, in_scene_images, in_scene_images_2, in_model_2nd, ") !=
          std::string::npos);
}

TEST_CASE("convolutions of both kinds share one form") {
    Graph graph;
    Shape const shape{{1, true}, {1, false}, {3, false}};
    std::vector<std::int64_t> const one{1};
    auto found = graph.input("inputs", Element::f32, shape);
    for (auto const* const kind : {"ConvTranspose", "Conv"}) {
        found = graph.add(kind, {found, graph.reals({2}, {1, 1, 1})}, {Element::f32, shape},
                          {{"kernel_shape", one},
                           {"strides", one},
                           {"pads", std::vector<std::int64_t>{0, 0}},
                           {"dilations", one},
                           {"group", std::int64_t{1}}});
    }
    graph.set_output(found);
    auto const text = c_source(graph, "net").source;
    auto const form = text.find("struct convolution {");
    CHECK(form < text.find("static void convolve("));
    CHECK(form < text.find("static void convolve_transposed("));
    CHECK(text.find("struct convolution {", form + 1) == std::string::npos);
}
