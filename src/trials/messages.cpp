#include "messages.hpp"

#include "search/outcome_json.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace lockstep::trials {

namespace {

using Json = nlohmann::json;

Json json_of_error(Error const& error) {
    auto const& text = error.text();
    return {{"code", static_cast<int>(error.code())},
            {"what", text.what},
            {"why", text.why},
            {"next", text.next}};
}

std::string dumped(Json const& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace

std::string text_of(RankReport const& report) {
    Json json{{"interrupted", report.interrupted}, {"lost", report.lost}};
    if (auto const& end = report.end) {
        json["outcome"] = search::json_of(end->outcome);
        json["left"] = end->interrupted;
        json["kept"] = end->kept;
        if (end->fatal) {
            json["fatal"] = json_of_error(*end->fatal);
        }
    }
    return dumped(json);
}

RankReport report_of(std::string const& text) {
    auto const json = Json::parse(text);
    RankReport report{
        .end = {}, .interrupted = json.at("interrupted"), .lost = json.at("lost").get<bool>()};
    if (json.contains("outcome")) {
        report.end = TrialEnd{.outcome = search::outcome_of(json.at("outcome")),
                              .interrupted = json.at("left"),
                              .fatal = {},
                              .kept = json.at("kept")};
    }
    if (json.contains("fatal")) {
        auto const& fatal = json.at("fatal");
        report.end->fatal.emplace(static_cast<ExitCode>(fatal.at("code").get<int>()),
                                  ErrorText{fatal.at("what"), fatal.at("why"), fatal.at("next")});
    }
    return report;
}

std::string text_of(RankOrder const& order) {
    if (order.what != RankOrder::What::train) {
        return dumped({{"do", order.what == RankOrder::What::wait ? "wait" : "leave"}});
    }
    auto const& trial = order.trial;
    return dumped({{"do", "train"},
                   {"number", order.number},
                   {"ranks", order.ranks},
                   {"trial", trial.job.trial},
                   {"share", trial.job.share},
                   {"parent", trial.job.parent},
                   {"first_step", trial.first_step},
                   {"parent_ranks", trial.parent_ranks},
                   {"values", trial.values},
                   {"needed", order.needed}});
}

RankOrder order_of(std::string const& text) {
    auto const json = Json::parse(text);
    if (json.at("do") == "wait") {
        return {RankOrder::What::wait};
    }
    if (json.at("do") == "leave") {
        return {RankOrder::What::leave};
    }
    return {.what = RankOrder::What::train,
            .number = json.at("number"),
            .ranks = json.at("ranks"),
            .trial = {.job = {.trial = json.at("trial"),
                              .share = json.at("share"),
                              .parent = json.at("parent")},
                      .values = json.at("values").get<search::Values>(),
                      .first_step = json.at("first_step"),
                      .parent_ranks = json.at("parent_ranks")},
            .needed = json.at("needed").get<std::set<StateOf>>()};
}

} // namespace lockstep::trials
