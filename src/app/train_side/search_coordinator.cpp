#include "search_coordinator.hpp"

#include "base/text.hpp"
#include "checkpoint/store.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace lockstep::app {

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

Json json_of_outcome(search::Outcome const& outcome) {
    Json json{{"trial", outcome.trial}, {"share", outcome.share},     {"code", outcome.code},
              {"step", outcome.step},   {"steps", outcome.steps},     {"seconds", outcome.seconds},
              {"ranks", outcome.ranks}, {"message", outcome.message}, {"metrics", Json::object()}};
    for (auto const& [name, value] : outcome.metrics) {
        json["metrics"][name] = std::isfinite(value) ? Json(value) : Json(nullptr);
    }
    return json;
}

search::Outcome outcome_of_json(Json const& json) {
    search::Outcome outcome{.trial = json.at("trial"),
                            .share = json.at("share"),
                            .code = json.at("code"),
                            .message = json.at("message"),
                            .step = json.at("step"),
                            .steps = json.at("steps"),
                            .seconds = json.at("seconds"),
                            .ranks = json.at("ranks")};
    for (auto const& [name, value] : json.at("metrics").items()) {
        outcome.metrics[name] = value.is_null() ? std::nan("") : value.get<double>();
    }
    return outcome;
}

bool is_retried(int code) {
    return code == static_cast<int>(ExitCode::memory) || code == static_cast<int>(ExitCode::io);
}

} // namespace

std::string report_text(std::optional<TrialEnd> const& end, std::string const& signal) {
    Json json{{"interrupted", signal}};
    if (end) {
        json["outcome"] = json_of_outcome(end->outcome);
        json["interrupted"] = end->interrupted.empty() ? signal : end->interrupted;
        json["left"] = !end->interrupted.empty();
        if (end->fatal) {
            json["fatal"] = json_of_error(*end->fatal);
        }
    }
    return dumped(json);
}

GroupOrder order_of(std::string const& text) {
    auto const json = Json::parse(text);
    if (json.at("do") == "wait") {
        return {GroupOrder::What::wait};
    }
    if (json.at("do") == "regroup") {
        return {GroupOrder::What::regroup};
    }
    return {GroupOrder::What::train,
            {.trial = json.at("trial"), .share = json.at("share"), .parent = json.at("parent")},
            json.at("values").get<search::Values>()};
}

SearchCoordinator::SearchCoordinator(Parts parts) : parts_(std::move(parts)) {}

std::string SearchCoordinator::answer(int, std::string const& request) noexcept {
    try {
        try {
            take(request);
            if (auto const job = next_job()) {
                return dumped(
                    {{"do", "train"},
                     {"trial", job->trial},
                     {"share", job->share},
                     {"parent", job->parent},
                     {"values",
                      parts_.study.trials()[static_cast<std::size_t>(job->trial)].values}});
            }
        } catch (...) {
            failure_ = failure_ ? failure_ : current_error();
            leave();
        }
        bool const waits = !regroup_ && !leaving_ && !running_.empty();
        return waits ? R"({"do":"wait"})" : R"({"do":"regroup"})";
    } catch (...) { // no memory even for that: the groups leave
        return R"({"do":"regroup"})";
    }
}

void SearchCoordinator::leave() {
    leaving_ = true;
    parts_.announce();
}

void SearchCoordinator::take(std::string const& report) {
    auto const json = Json::parse(report);
    if (json.contains("fatal") && !failure_) {
        auto const& fatal = json.at("fatal");
        failure_.emplace(static_cast<ExitCode>(fatal.at("code").get<int>()),
                         ErrorText{fatal.at("what"), fatal.at("why"), fatal.at("next")});
        leave();
    } else if (json.contains("outcome")) {
        auto const outcome = outcome_of_json(json.at("outcome"));
        busy_s_ += outcome.seconds * outcome.ranks;
        if (json.at("left").get<bool>()) {
            running_.erase(outcome.trial); // its job is open, and is done at the next start
        } else {
            take_outcome(outcome);
        }
    }
    if (auto const& signal = json.at("interrupted").get_ref<std::string const&>();
        !signal.empty() && !leaving_) {
        interrupted_ = signal;
        leave();
    }
}

void SearchCoordinator::take_outcome(search::Outcome const& reported) {
    auto outcome = reported;
    auto const job = running_.at(outcome.trial);
    running_.erase(outcome.trial);
    if (is_retried(outcome.code) && retries_[outcome.trial] < parts_.study.settings().retries) {
        ++retries_[outcome.trial];
        parts_.study.note({{"event", "retry"}, {"trial", outcome.trial}, {"code", outcome.code}});
        queue_.push_back(job);
        return;
    }
    for (auto const& goal : parts_.study.settings().goals) {
        if (outcome.code == 0 && !outcome.metrics.contains(goal.metric)) {
            std::vector<std::string> names{"seconds"};
            for (auto const& [name, value] : outcome.metrics) {
                names.push_back(name);
            }
            auto const near = nearest_name(goal.metric, names);
            throw Error(ExitCode::usage,
                        {concat("search.goals: ", goal.metric),
                         outcome.metrics.contains("loss")
                             ? concat("trials measure ", joined(names, ", "))
                             : std::string("the deck has no validation set"),
                         near.empty() ? std::string("Name one of these, and set data.validation")
                                      : concat("Did you mean ", near, "?")});
        }
    }
    parts_.study.tell(outcome);
    print(outcome);
}

void SearchCoordinator::print(search::Outcome const& outcome) const {
    std::vector<std::string> values;
    for (auto const& goal : parts_.study.settings().goals) {
        auto const found = outcome.metrics.find(goal.metric);
        if (found != outcome.metrics.end()) {
            values.push_back(concat(goal.metric, " ", found->second));
        }
    }
    std::cout << concat("trial ", outcome.trial + 1, " to step ", outcome.step, " (",
                        fixed(100 * outcome.share, 0), " %): ",
                        outcome.code == 0
                            ? joined(values, ", ")
                            : concat("failed (", outcome.code, "): ", outcome.message),
                        "\n")
              << std::flush;
}

int SearchCoordinator::wanted_groups() const {
    auto const most =
        std::max<std::int64_t>(parts_.ranks / parts_.study.settings().ranks_per_trial, 1);
    return static_cast<int>(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(queue_.size()), 1, most));
}

/// Jobs that may be given out now, as many as there could be groups.
void SearchCoordinator::fill() {
    while (std::cmp_less(queue_.size(), parts_.ranks)) {
        auto job = parts_.study.next();
        if (!job) {
            return;
        }
        put_by_parent(*job);
        queue_.push_back(std::move(*job));
    }
}

std::optional<search::Job> SearchCoordinator::next_job() {
    if (leaving_ || regroup_) {
        return std::nullopt;
    }
    if (running_.empty()) { // nobody works: the time for other groups, if they fit better
        fill();
        regroup_ = queue_.empty() || wanted_groups() != groups_;
        if (regroup_) {
            return std::nullopt;
        }
    }
    if (queue_.empty()) {
        auto job = parts_.study.next();
        if (!job) {
            return std::nullopt;
        }
        put_by_parent(*job);
        queue_.push_back(std::move(*job));
    }
    auto job = queue_.front();
    queue_.pop_front();
    running_[job.trial] = job;
    return job;
}

/// The checkpoint that a new trial begins with gets a name of its own, before the parent trains on
/// and removes it.
void SearchCoordinator::put_by_parent(search::Job const& job) const {
    auto const own = parts_.directory / search::trial_directory(job.trial);
    auto const from = own / "from.h5";
    if (job.parent < 0 || std::filesystem::exists(from)) {
        return;
    }
    auto const parent = parts_.directory / search::trial_directory(job.parent) / "checkpoints";
    auto const list = checkpoint::Store(parent, 1).list();
    if (list.empty()) {
        throw Error(ExitCode::data, {concat("no checkpoint in ", parent.string()),
                                     concat("trial ", job.trial + 1, " begins with it"),
                                     "Restore it, or start the search in another --directory"});
    }
    make_directories(own);
    std::error_code failure;
    std::filesystem::create_hard_link(list.front().path, from, failure);
    if (failure) { // a file system without links
        auto const partial = std::filesystem::path(from.string() + ".partial");
        std::filesystem::copy_file(list.front().path, partial,
                                   std::filesystem::copy_options::overwrite_existing);
        rename_durably(partial, from);
    }
}

int SearchCoordinator::form_groups() {
    if (failure_) {
        throw Error(*failure_);
    }
    if (leaving_) {
        return 0;
    }
    fill();
    regroup_ = false;
    groups_ = queue_.empty() ? 0 : wanted_groups();
    return groups_;
}

void SearchCoordinator::note_usage() {
    auto const all = watch_.seconds() * parts_.ranks;
    parts_.study.note({{"event", "usage"},
                       {"ranks", parts_.ranks},
                       {"rank_seconds", all},
                       {"busy_rank_seconds", busy_s_},
                       {"interrupted", interrupted_}});
}

} // namespace lockstep::app
