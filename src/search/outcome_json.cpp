#include "search/outcome_json.hpp"

#include <cmath>
#include <limits>

namespace lockstep::search {

using Json = nlohmann::json;

Json json_of(Outcome const& outcome) {
    Json json{{"trial", outcome.trial}, {"share", outcome.share}, {"code", outcome.code},
              {"step", outcome.step},   {"steps", outcome.steps}, {"seconds", outcome.seconds},
              {"ranks", outcome.ranks}};
    for (auto const& [name, value] : outcome.metrics) { // JSON has no NaN
        json["metrics"][name] = std::isfinite(value) ? Json(value) : Json(nullptr);
    }
    if (!outcome.message.empty()) {
        json["message"] = outcome.message;
    }
    return json;
}

Outcome outcome_of(Json const& json) {
    Outcome outcome{.trial = json.at("trial").get<std::int64_t>(),
                    .share = json.at("share").get<double>(),
                    .code = json.at("code").get<int>(),
                    .message = json.value("message", ""),
                    .step = json.at("step").get<std::int64_t>(),
                    .steps = json.at("steps").get<std::int64_t>(),
                    .seconds = json.at("seconds").get<double>(),
                    .ranks = json.at("ranks").get<int>()};
    auto const metrics = json.value("metrics", Json::object());
    for (auto const& [name, value] : metrics.items()) {
        outcome.metrics[name] =
            value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    }
    return outcome;
}

} // namespace lockstep::search
