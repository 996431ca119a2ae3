#include "base/json_text.hpp"

#include "base/text.hpp"

#include <optional>
#include <set>
#include <vector>

namespace lockstep {

bool nests_deeper(std::string_view text, int max_depth) {
    int depth = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        switch (text[at]) {
        case '"':
            for (++at; at < text.size() && text[at] != '"'; ++at) {
                at += text[at] == '\\' ? 1 : 0;
            }
            break;
        case '[':
        case '{':
            if (++depth > max_depth) {
                return true;
            }
            break;
        case ']':
        case '}':
            --depth;
            break;
        default:
            break;
        }
    }
    return false;
}

nlohmann::json parsed_json(std::string_view text,
                           std::function<void(std::string const& why)> const& refuse,
                           int max_depth) {
    if (nests_deeper(text, max_depth)) {
        refuse(concat("is nested more than ", max_depth, " levels deep"));
    }
    using Event = nlohmann::json::parse_event_t;
    std::vector<std::set<std::string>> names; // of the objects that are open
    std::optional<std::string> twice;
    auto const note = [&](int /*depth*/, Event event, nlohmann::json const& value) {
        if (event == Event::object_start) {
            names.emplace_back();
        } else if (event == Event::object_end) {
            names.pop_back();
        } else if (event == Event::key && !names.back().insert(value.get<std::string>()).second) {
            twice = value.get<std::string>();
        }
        return true;
    };
    auto json = nlohmann::json::parse(text, note, /*allow_exceptions=*/false);
    if (json.is_discarded()) {
        refuse("is not JSON");
    }
    if (twice) { // readers differ in which of the two they take
        refuse(concat("has the name ", *twice, " twice in one object"));
    }
    return json;
}

} // namespace lockstep
