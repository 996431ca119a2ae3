#include "records.hpp"

#include "base/json_text.hpp"

namespace lockstep::serve {

nlohmann::json parsed_record(std::string_view line) {
    using Json = nlohmann::json;
    Json const none(Json::value_t::discarded);
    auto record = json_or_nothing(line);
    return record.is_object() ? record : none;
}

std::string one_line(nlohmann::json const& record) {
    return record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace lockstep::serve
