#include "arena/layout.hpp"
#include "checkpoint/model_file.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/model_files/load_weights.hpp"
#include "model_files/common_weights.hpp"

#include <array>

#include "catch.hpp"
#include "error_of.hpp"
#include "scratch_dir.hpp"

using namespace lockstep;

namespace {

/// One tensor under two names.
struct Shared : nn::Model {
    Shared() { register_parameter("second", first); }
    torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only() * first; }
    torch::Tensor first = register_parameter("first", torch::zeros({2}));
};

/// A body, a head of `classes`, and a count; another program calls the body's parts otherwise.
struct Headed : nn::Model {
    explicit Headed(std::int64_t classes)
        : body(register_parameter("body", torch::full({2, 3}, 7.0))),
          key(register_parameter("key", torch::full({2}, 7.0))),
          head(register_parameter("head", torch::full({classes, 2}, 7.0))),
          count(register_buffer("count", torch::full({}, 7, torch::kInt64))) {}
    torch::Tensor forward(nn::Fields const& inputs) override { return inputs.only(); }
    std::vector<nn::WeightSource> other_names(std::string const& name) const override {
        using Sources = std::vector<nn::WeightSource>;
        return name == "body"    ? Sources{{.name = "theirs.body", .transposed = true}}
               : name == "key"   ? Sources{{.name = "theirs.qkv", .part = 1, .parts = 3}}
               : name == "count" ? Sources{{"theirs.count"}}
                                 : Sources{};
    }

    torch::Tensor body;
    torch::Tensor key;
    torch::Tensor head;
    torch::Tensor count;
};

struct Stored {
    std::string name;
    h5::Shape shape;
    std::vector<float> values{};
    std::vector<std::int64_t> whole{};
};

checkpoint::VerifiedFile written(std::filesystem::path const& path,
                                 std::vector<Stored> const& stored) {
    std::vector<checkpoint::NamedArray> arrays;
    for (auto const& each : stored) {
        arrays.push_back({train::path_of("model." + each.name),
                          each.whole.empty() ? h5::Type::f32 : h5::Type::i64, each.shape,
                          each.whole.empty() ? std::as_bytes(std::span(each.values))
                                             : std::as_bytes(std::span(each.whole))});
    }
    checkpoint::write_model(path, arrays, {{{"step", 5}}, {}, "", "", {}});
    return {path};
}

} // namespace

TEST_CASE("what a model and a file have in common is taken, and the rest is told") {
    test::ScratchDir const scratch;
    using Names = std::vector<std::string>;
    struct Case {
        std::string of;
        std::vector<Stored> stored;
        std::int64_t classes;
        Names taken;
        Names fresh; ///< "name: in the file"
        Names left_over;
    };
    std::vector<float> const six{1, 2, 3, 4, 5, 6};
    std::vector<float> const four{1, 2, 3, 4};
    std::vector<Case> const cases{
        {"all",
         {{"body", {2, 3}, six},
          {"key", {2}, {8, 9}},
          {"head", {2, 2}, four},
          {"count", {1}, {}, {5}}},
         2,
         {"body", "key", "head", "count"},
         {},
         {}},
        {"another head",
         {{"body", {2, 3}, six},
          {"key", {2}, {8, 9}},
          {"head", {2, 2}, four},
          {"count", {1}, {}, {5}}},
         3,
         {"body", "key", "count"},
         {"head: head [2, 2]"},
         {"head"}},
        {"another program's names",
         {{"theirs.body", {3, 2}, six}, {"theirs.qkv", {6}, six}, {"theirs.count", {1}, {}, {5}}},
         2,
         {"body", "key", "count"},
         {"head: "},
         {}},
        {"parts that do not divide",
         {{"theirs.qkv", {2}, {8, 9}}, {"head", {2, 2}, four}},
         2,
         {"head"},
         {"body: ", "key: theirs.qkv [2]", "count: "},
         {"theirs.qkv"}},
        {"nothing",
         {{"other", {2}, {8, 9}}},
         2,
         {},
         {"body: ", "key: ", "head: ", "count: "},
         {"other"}}};
    for (auto const& each : cases) {
        CAPTURE(each.of);
        Headed model(each.classes);
        auto const file = written(scratch / (each.of + ".h5"), each.stored);
        auto const common = train::load_common_weights(model, file);
        CHECK(common.taken == each.taken);
        Names fresh;
        for (auto const& [name, in_file] : common.fresh) {
            fresh.push_back(name + ": " + in_file);
        }
        CHECK(fresh == each.fresh);
        CHECK(common.left_over == each.left_over);
        auto const is_taken = [&](std::string const& name) {
            return std::ranges::find(each.taken, name) != each.taken.end();
        };
        auto const whole = torch::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F});
        bool const transposed = each.of == "another program's names";
        CHECK(torch::equal(model.body.detach(), !is_taken("body") ? torch::full({2, 3}, 7.0F)
                                                : transposed      ? whole.view({3, 2}).t()
                                                                  : whole.view({2, 3})));
        CHECK(torch::equal(model.key.detach(), !is_taken("key") ? torch::full({2}, 7.0F)
                                               : transposed     ? torch::tensor({3.0F, 4.0F})
                                                                : torch::tensor({8.0F, 9.0F})));
        CHECK(model.count.item<std::int64_t>() == (is_taken("count") ? 5 : 7));
        Headed strict(each.classes);
        if (each.fresh.empty()) {
            CHECK(train::load_weights(strict, file) == each.left_over);
        } else {
            CHECK(test::error_of([&] { train::load_weights(strict, file); }).code() ==
                  ExitCode::data);
        }
    }
}

TEST_CASE("a parameter with two names is loaded from a file that has one of them") {
    test::ScratchDir const scratch;
    std::array<float, 2> const values{3, -4};
    auto const write = [&](std::string const& name) {
        checkpoint::write_model(
            scratch / (name + ".h5"),
            {{"model/" + name, h5::Type::f32, {2}, std::as_bytes(std::span(values))}},
            {{{"step", 5}}, {}, "", "", {}});
        return scratch / (name + ".h5");
    };
    for (auto const* const name : {"first", "second"}) {
        Shared model;
        CHECK(train::load_weights(model, {write(name)}).empty());
        CHECK(torch::equal(model.first.detach(), torch::tensor({3.0F, -4.0F})));
    }
    Shared model;
    CHECK(test::error_of([&] { train::load_weights(model, {write("third")}); }).code() ==
          ExitCode::data);
}
