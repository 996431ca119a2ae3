#include "base/json_text.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

namespace lockstep {

nlohmann::json parsed_json(std::string const& text, int max_depth,
                           std::function<void(std::string const& why)> const& refuse) {
    using Json = nlohmann::json;
    auto const check = [&](int depth, Json::parse_event_t /*event*/, Json const& /*parsed*/) {
        if (depth > max_depth) {
            refuse(concat("is nested more than ", max_depth, " levels deep"));
        }
        return true;
    };
    auto json = Json::parse(text, check, /*allow_exceptions=*/false);
    if (json.is_discarded()) {
        refuse("is not JSON");
    }
    return json;
}

} // namespace lockstep
