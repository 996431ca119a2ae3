#include "base/json_text.hpp"

#include "base/text.hpp"

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
    auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) {
        refuse("is not JSON");
    }
    return json;
}

} // namespace lockstep
