#include "data/facts_text.hpp"
#include "h5/element_type.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/data/facts.hpp"

#include <functional>
#include <limits>
#include <string_view>
#include <utility>

#include "catch.hpp"
#include "error_of.hpp"

using namespace lockstep;
using data::Facts;
using data::Use;

namespace {

/// The facts of a table, and of texts, that are known in every respect.
Facts known() {
    return {
        .inputs = {{"x", h5::Type::f32, {2, 3}}, {"words", h5::Type::u16, {}, true, true, 300, 2}},
        .targets = {{"y", h5::Type::i64, {}, true}},
        .classes = {"cat", "dog", "eel"},
        .class_count = 3,
        .mean = {1, 2},
        .std = {0.5, 1e-30},
        .channels_last = true,
        .scale_known = true,
        .columns = {"a", "b", "c"},
        .sample_rate = 16000,
        .token_bytes = {1, 2, 255},
        .tokenizer = "{\"model\": \"ä\n\"}"};
}

struct Change {
    std::string name;
    std::function<void(Facts&)> make;
    std::string told;        ///< of a set that is used as it is; empty: nothing
    bool of_training = true; ///< whether a model that is trained further refuses it, too
};

std::vector<Change> changes() {
    return {
        {"nothing", [](Facts&) {}, ""},
        {"another scale",
         [](Facts& f) {
             f.mean = {5, 6};
         },
         ""},
        {"an input less", [](Facts& f) { f.inputs.pop_back(); }, "has the inputs x, but in them"},
        {"inputs in another order", [](Facts& f) { std::swap(f.inputs[0], f.inputs[1]); },
         "the order of its inputs is words, x"},
        {"an input of another name", [](Facts& f) { f.inputs[0].name = "z"; }, ""},
        {"another shape",
         [](Facts& f) {
             f.inputs[0].shape = {2, 4};
         },
         "samples of shape [2, 4]", false},
        {"a dimension of 1",
         [](Facts& f) {
             f.inputs[0].shape = {1, 2, 3};
         },
         "Only one of them has a dimension of 1 there; store both alike", false},
        {"another order of dimensions",
         [](Facts& f) {
             f.inputs[0].shape = {3, 2};
         },
         "the order of the dimensions differs"},
        {"bytes", [](Facts& f) { f.inputs[0].type = h5::Type::u8; }, "divided by 255"},
        {"doubles", [](Facts& f) { f.inputs[0].type = h5::Type::f64; }, ""},
        {"whole numbers", [](Facts& f) { f.inputs[0].whole = true; }, "dataset x has type f32"},
        {"rows", [](Facts& f) { f.inputs[0].ragged = true; }, "in any number of rows"},
        {"another vocabulary", [](Facts& f) { f.inputs[1].vocabulary = 301; }, "a vocabulary of"},
        {"another end", [](Facts& f) { f.inputs[1].end_of_text = 3; }, "the end-of-text token"},
        {"other targets", [](Facts& f) { f.targets[0].shape = {2}; }, "dataset y has samples of",
         false},
        {"a class less", [](Facts& f) { f.classes.pop_back(), --f.class_count; }, ""},
        {"a class more", [](Facts& f) { f.classes.emplace_back("fox"), ++f.class_count; },
         "its class 3 is fox, but them has no such class", false},
        {"an unnamed class more", [](Facts& f) { f.classes.clear(), ++f.class_count; },
         "it has 4 classes", false},
        {"no names", [](Facts& f) { f.classes.clear(); }, ""},
        {"another name", [](Facts& f) { f.classes[1] = "fox"; }, "its class 1 is fox, but them",
         false},
        {"names in another order", [](Facts& f) { std::swap(f.classes[0], f.classes[1]); },
         "its class 0 is dog, but them calls it cat"},
        {"another column", [](Facts& f) { f.columns[2] = "d"; }, "its column 2 is d", false},
        {"columns in another order", [](Facts& f) { std::swap(f.columns[0], f.columns[2]); },
         "its column 0 is c, but them calls it a"},
        {"no columns", [](Facts& f) { f.columns.clear(); }, ""},
        {"another rate", [](Facts& f) { f.sample_rate = 8000; }, "its sample rate is 8000 Hz"},
        {"another tokenizer", [](Facts& f) { f.tokenizer += " "; }, "another tokenizer"},
        {"other tokens", [](Facts& f) { f.token_bytes[0] = 7; }, "another tokenizer"},
    };
}

} // namespace

TEST_CASE(
    "each fact that differs is told, but for what a model that is trained further may learn") {
    for (auto const& change : changes()) {
        INFO(change.name);
        auto set = known();
        change.make(set);
        auto const told = data::difference(set, known(), "them");
        CHECK((change.told.empty() ? told.empty() : told.find(change.told) != std::string::npos));
        auto const further = data::difference(set, known(), "them", Use::trained_further);
        CHECK(further.empty() == (told.empty() || !change.of_training));
        CHECK(data::difference(set, {}, "them").empty()); // of an unknown one, in nothing
    }
    auto set = known();
    set.classes[1] = "fox";
    CHECK(data::renamed(set, "mine", known(), "them").size() == 1);
    CHECK(data::renamed(known(), "mine", known(), "them").empty());
}

TEST_CASE("values that are learnt are known by the names of their datasets, classes are not") {
    auto const of = [](std::vector<std::string> const& names, bool whole, std::int64_t classes) {
        Facts facts{.class_count = classes};
        for (auto const& name : names) {
            facts.targets.push_back({name, h5::Type::f32, {}, whole});
        }
        return facts;
    };
    auto const values = of({"ab"}, false, 0);
    CHECK(data::difference(of({"ba"}, false, 0), values, "them") ==
          "its targets are ba, but those of them are ab");
    CHECK(data::renamed(of({"ba"}, false, 0), "mine", values, "them").size() == 1);
    CHECK(data::difference(of({"ba"}, false, 0), values, "them", Use::trained_further).empty());
    CHECK_FALSE(data::difference(of({"ba"}, true, 0), of({"ab"}, true, 0), "them").empty());
    CHECK_FALSE(
        data::difference(of({"a", "c"}, false, 0), of({"a", "b"}, false, 0), "them").empty());
    CHECK(data::difference(of({"ba"}, true, 3), of({"ab"}, true, 3), "them").empty());
    CHECK(data::difference(values, values, "them").empty());
}

TEST_CASE("a mask of tokens tells nothing of what a text means") {
    Facts const text{.inputs = {{"inputs", h5::Type::u16, {8}, true, false, 300}},
                     .targets = {{"inputs", h5::Type::u16, {8}, true, false, 300}}};
    auto masked = text;
    masked.targets.push_back({"learnt", h5::Type::u8, {8}, true});
    CHECK(data::difference(masked, text, "them").empty());
    CHECK(data::difference(text, masked, "them").empty());
    masked.targets[0].vocabulary = 301;
    CHECK(data::difference(masked, text, "them").find("a vocabulary of 301") != std::string::npos);
    auto more = masked; // two values to learn
    more.targets[0].name = "others";
    CHECK(data::difference(more, text, "them").find("a sample has the targets others, learnt") ==
          0);
}

TEST_CASE("another scale is told, and warned of where the units seem to be others") {
    auto const told = [](std::vector<double> mean, std::vector<double> std) {
        auto set = known();
        set.mean = std::move(mean);
        set.std = std::move(std);
        auto reference = known();
        reference.std = {0.5, 4};
        return data::other_scale(set, "mine", reference, "them");
    };
    CHECK(told({1, 2}, {0.5, 4}).empty());
    CHECK(told({}, {}).empty());
    CHECK(told({1.2, 2}, {0.5, 5}) ==
          "mine is normalized with the mean and std of them, not with its own");
    CHECK(told({1, 200}, {0.5, 4}).starts_with("warning: "));
    CHECK(told({1, 2}, {0.5, 400}).starts_with("warning: "));
    CHECK(told({1, 2}, {0.0005, 4}).find("column a") != std::string::npos);
}

TEST_CASE("facts are read back from their text as they were, and from no other text") {
    auto const text = data::text_of(known());
    CHECK(data::facts_of_text(text, "a file") == known());
    CHECK(data::facts_of_text(data::text_of({}), "a file") == Facts{});
    auto earlier = text; // does not tell of the last dimension
    earlier.replace(earlier.find("\"channels_last\":true,"), 21, "");
    CHECK_FALSE(data::facts_of_text(earlier, "a file").channels_last);
    CHECK(text.find("target_mean") == std::string::npos); // files without it are as they were
    auto normalised = known();
    normalised.target_mean = {0.1};
    normalised.target_std = {1.0 / 3};
    CHECK(data::facts_of_text(data::text_of(normalised), "a file") == normalised);
    auto unfit = known();
    unfit.std.pop_back();
    for (auto const& wrong : {std::string(), std::string("{}"), std::string("[1]"),
                              text.substr(0, text.size() / 2), data::text_of(unfit)}) {
        CHECK(test::error_of([&] { data::facts_of_text(wrong, "a file"); }).code() ==
              ExitCode::data);
    }
}

TEST_CASE("facts that no data set has are refused") {
    auto const refused = [](std::string const& what, auto const& spoil) {
        auto facts = known();
        spoil(facts);
        CAPTURE(what);
        auto const error =
            test::error_of([&] { data::facts_of_text(data::text_of(facts), "a file"); });
        CHECK(error.code() == ExitCode::data);
        CHECK(test::says(error, "a file"));
    };
    constexpr std::uint64_t much = std::uint64_t{1} << 40;
    for (auto const& shape :
         {h5::Shape{much, much}, h5::Shape{0, 28}, h5::Shape{much << 22},
          h5::Shape{~std::uint64_t{27}, ~std::uint64_t{27}}, // -28, -28
          h5::Shape{2, 3, 0}, h5::Shape{1, 40000, 40000}, h5::Shape{much << 23, 2, much << 23}}) {
        refused("a shape of inputs", [&](Facts& f) { f.inputs[1].shape = shape; });
        refused("a shape of targets", [&](Facts& f) { f.targets[0].shape = shape; });
    }
    for (auto const count : {std::int64_t{-1}, std::int64_t{100001}, std::int64_t{1} << 40}) {
        refused("a number of classes", [&](Facts& f) { f.class_count = count; });
    }
    refused("too many names", [](Facts& f) { f.classes.resize(100001, "a"); });
    for (auto const vocabulary : {std::int64_t{-1}, std::int64_t{1} << 40}) {
        refused("a vocabulary", [&](Facts& f) { f.inputs[1].vocabulary = vocabulary; });
    }
    for (auto const* const name : {"a\nb", "a\x1b[31m", "\t", "a\x7f"}) {
        refused("a name of a class", [&](Facts& f) { f.classes[1] = name; });
    }
    refused("two classes of a name", [](Facts& f) { f.classes[2] = "cat"; });
    refused("more names than classes", [](Facts& f) { f.class_count = 2; });
    refused("scales of more channels", [](Facts& f) {
        f.mean = {1, 2, 4, 8}, f.std = {1, 1, 1, 1};
    });
    refused("scales of fewer channels", [](Facts& f) { f.inputs[0].shape = {3, 4}; });
    auto const text = data::text_of(known());
    for (auto const& [was, is] : {std::pair("\"shape\":[2,3]", "\"shape\":[2.5,3]"),
                                  {"\"shape\":[2,3]", "\"shape\":[true,3]"},
                                  {"\"class_count\":3", "\"class_count\":3.5"},
                                  {"\"vocabulary\":300", "\"vocabulary\":300.25"},
                                  {"\"end_of_text\":2", "\"end_of_text\":2.5"},
                                  {"[1,2,255]", "[1,2,256]"},
                                  {"[1,2,255]", "[1,2,-1]"}}) {
        CAPTURE(is);
        auto other = text;
        REQUIRE(other.find(was) != std::string::npos);
        other.replace(other.find(was), std::string_view(was).size(), is);
        CHECK(test::error_of([&] { data::facts_of_text(other, "a file"); }).code() ==
              ExitCode::data);
    }
    Facts const actions{.classes = {"left", "", "left"}}; // of a plug-in
    CHECK(data::facts_of_text(data::text_of(actions), "a file") == actions);
    auto most = known();
    most.class_count = 100000;
    most.inputs[0].shape = {2, 512, 512, 512};
    CHECK(data::facts_of_text(data::text_of(most), "a file") == most);
}

TEST_CASE("inputs are scaled by numbers that their float32 can hold") {
    struct Case {
        h5::Type type;
        double mean;
        double std;
        bool fits;
    };
    constexpr auto inf = std::numeric_limits<double>::infinity();
    constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
    for (auto const& [type, mean, std, fits] :
         {Case{h5::Type::f32, -3e38, 3e38, true}, Case{h5::Type::f32, 1e308, 1, false},
          Case{h5::Type::f32, -1e39, 1, false}, Case{h5::Type::u8, 0, 1e39, false},
          Case{h5::Type::f16, 0, 1e-39, false}, Case{h5::Type::f64, 1e308, 1e-300, true},
          Case{h5::Type::i32, 1e308, 1e-300, true}, Case{h5::Type::f64, 0, 0, false},
          Case{h5::Type::f32, 0, -1, false}, Case{h5::Type::f64, nan, 1, false},
          Case{h5::Type::f64, 0, nan, false}, Case{h5::Type::f64, inf, 1, false},
          Case{h5::Type::f32, 0, inf, false}}) {
        CAPTURE(h5::name_of(type), mean, std);
        auto facts = known();
        facts.inputs[0].type = type;
        facts.mean = {mean, 0};
        facts.std = {1, std};
        auto const text = data::text_of(facts);
        if (fits) {
            CHECK(data::facts_of_text(text, "a file") == facts);
        } else {
            CHECK(test::error_of([&] { data::facts_of_text(text, "a file"); }).code() ==
                  ExitCode::data);
        }
    }
}

TEST_CASE("what others know completes what a set does not") {
    CHECK(data::completed({}, known()).classes == known().classes);
    auto own = known();
    own.columns = {"d"};
    CHECK(data::completed(own, known()).columns == own.columns);
}
