#include "records.hpp"

#include <algorithm>

namespace lockstep::serve {

namespace {

constexpr int max_depth = 100; ///< brackets within texts count, too

bool is_too_deep(std::string_view line) {
    int depth = 0;
    return std::ranges::any_of(line, [&](char letter) {
        depth += letter == '[' || letter == '{' ? 1 : 0;
        depth -= letter == ']' || letter == '}' ? 1 : 0;
        return depth > max_depth;
    });
}

} // namespace

nlohmann::json parsed_record(std::string_view line) {
    using Json = nlohmann::json;
    Json const none(Json::value_t::discarded);
    if (is_too_deep(line)) {
        return none;
    }
    auto record = Json::parse(line, nullptr, false);
    return record.is_object() ? record : none;
}

std::string one_line(nlohmann::json const& record) {
    return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace lockstep::serve
