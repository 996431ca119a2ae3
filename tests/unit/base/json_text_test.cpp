#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>

#include "catch.hpp"

using namespace lockstep;

namespace {

/// Why a text is refused; empty where it is not.
std::string complaint_of(std::string const& text, int max_depth) {
    try {
        parsed_json(
            text, [](std::string const& why) { throw std::runtime_error(why); }, max_depth);
    } catch (std::runtime_error const& error) {
        return error.what();
    }
    return {};
}

} // namespace

TEST_CASE("JSON of others is read up to a depth") {
    CHECK(parsed_json(R"({"a": [1, {"b": 2}]})", {}, 3).at("a").at(1).at("b") == 2);
    CHECK(complaint_of(R"({"a": [1, {"b": 2}]})", 2) == "is nested more than 2 levels deep");
    CHECK(complaint_of(std::string(100'000, '['), 1000) == "is nested more than 1000 levels deep");
    CHECK(complaint_of(R"(["[[[", "\"[[", "\\", [1]])", 2).empty()); // brackets within texts
    CHECK(complaint_of(R"(["\\", [[1]]])", 2) == "is nested more than 2 levels deep");
    CHECK(json_or_nothing(std::string(100'000, '[') + std::string(100'000, ']')).is_discarded());
    CHECK(json_or_nothing("[1]") == nlohmann::json::array({1}));
    for (auto const* const text : {"", "{", "{]", "1 2", "nothing", R"({"a": 1e999})"}) {
        CAPTURE(text);
        CHECK(complaint_of(text, 1000) == "is not JSON");
    }
}
