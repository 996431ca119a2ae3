#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

/// What works on a JSON value may recurse, so that deep nesting would end the process.
constexpr int max_json_depth = 200;

/// Whether a JSON text nests arrays and objects deeper than that.
bool nests_deeper(std::string_view text, int max_depth = max_json_depth);

/// The JSON value that a text is, which may come from anywhere; discarded where the text is not
/// JSON, or is nested too deeply.
template <class Json = nlohmann::json>
Json json_or_nothing(std::string_view text) {
    return nests_deeper(text) ? Json(Json::value_t::discarded)
                              : Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// The same, but where there is none, or an object has a name twice, `refuse` is called with the
/// reason ("is not JSON"), and must throw.
nlohmann::json parsed_json(std::string_view text,
                           std::function<void(std::string const& why)> const& refuse,
                           int max_depth = max_json_depth);

} // namespace lockstep
