#include "search/study.hpp"

#include "base/number.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/error.hpp"
#include "search/outcome_json.hpp"
#include "search/pareto.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <tuple>

namespace lockstep::search {

namespace {

using Json = nlohmann::json;

Json json_of(Job const& job, Values const& values) {
    Json json{{"event", "ask"}, {"trial", job.trial}, {"share", job.share}};
    if (!job.point.empty()) {
        json["values"] = values;
    }
    if (job.parent >= 0) {
        json["parent"] = job.parent;
        json["parent_share"] = job.parent_share;
    }
    return json;
}

[[noreturn]] void throw_foreign(std::string const& why) {
    throw Error(
        ExitCode::data,
        {"the search's journal does not fit the search", why,
         "Continue with the version of the program that began the search, or start the search "
         "in another --directory"});
}

void require_same(Identity const& before, Identity const& now) {
    auto const refuse = [](std::string const& what, std::string const& why) {
        throw Error(ExitCode::usage, {what, why,
                                      "Undo this change, or start the search in another "
                                      "--directory"});
    };
    for (auto const& [key, value] : now.space) {
        auto const old = before.space.find(key);
        if (old == before.space.end() || old->second != value) {
            refuse(concat(key, " = ", value), old == before.space.end()
                                                  ? "the search began without it"
                                                  : concat("the search began with ", old->second));
        }
    }
    for (auto const& [key, value] : before.space) {
        if (!now.space.contains(key)) {
            refuse(concat(key, " is no longer set"), concat("the search began with ", value));
        }
    }
    if (before.deck != now.deck) {
        refuse("the deck of the search was changed",
               "trials of different decks cannot be compared");
    }
}

} // namespace

config::DeckSource Study::source_of(Identity const& identity) {
    config::DeckSource source;
    for (auto const& [key, value] : identity.space) {
        source.set(key, {value, journal_name});
    }
    return source;
}

Study::Study(Identity identity, std::unique_ptr<Journal> journal)
    : identity_(std::move(identity)), settings_(settings_of(source_of(identity_))),
      space_(source_of(identity_), settings_.constraints, settings_.constraints_origin),
      strategy_(make_strategy(settings_, space_)), journal_(std::move(journal)) {
    if (!journal_) {
        return;
    }
    if (journal_->before().empty()) {
        journal_->append({{"event", "search"},
                          {"space", identity_.space},
                          {"deck", identity_.deck},
                          {"version", identity_.version}});
        return;
    }
    replay(journal_->before());
}

std::unique_ptr<Study> Study::look_at(std::filesystem::path const& directory) {
    require_own_choice(directory / journal_name);
    auto const records = Journal::read(directory / journal_name);
    if (records.empty()) {
        throw Error(ExitCode::no_input,
                    {concat("no search in ", directory.string()), "its journal is empty",
                     "Start the search first, with lockstep search or lockstep search suggest"});
    }
    Identity identity;
    try {
        auto const& first = records.front();
        identity = {first.at("space").get<std::map<std::string, std::string>>(),
                    first.at("deck").get<std::string>(), first.at("version").get<std::string>()};
    } catch (Json::exception const&) {
        throw_foreign("its first line does not describe a search");
    }
    auto study = std::make_unique<Study>(std::move(identity), nullptr);
    study->replay(records);
    return study;
}

void Study::replay(std::vector<Json> const& records) {
    try {
        auto const& first = records.front();
        if (first.at("event") != "search") {
            throw_foreign("its first line does not describe a search");
        }
        require_same({first.at("space").get<std::map<std::string, std::string>>(),
                      first.at("deck").get<std::string>(), ""},
                     identity_);
        for (std::size_t at = 1; at < records.size(); ++at) {
            auto const& event = records[at].at("event");
            if (event == "ask") {
                take_ask(records[at]);
            } else if (event == "result") {
                auto const outcome = outcome_of(records[at]);
                if (records[at].at("code") != outcome.code ||
                    records[at].at("ranks") != outcome.ranks) {
                    throw_foreign("one of its lines has a number that no search writes");
                }
                accept(outcome);
            } else {
                take_note(records[at]);
            }
        }
    } catch (Json::exception const&) {
        throw_foreign("one of its lines is incomplete");
    }
    // In their order: one that begins with another's checkpoint comes before that one continues.
    auto left = open_;
    for (auto at = asked_.size(); at-- > 0;) {
        if (auto const found = left.extract(asked_[at])) {
            waiting_.push_front(found.mapped());
        }
    }
}

/// Throws  Json::exception where it lacks what is read of it now or later
void Study::take_note(Json record) {
    auto const& event = record.at("event").get_ref<std::string const&>();
    if (event == "begin") {
        auto const trial = record.at("trial").get<std::int64_t>();
        auto const step = record.at("step").get<std::int64_t>();
        begun_[trial] = {.step = step, .deaths = deaths(trial, step), .trains = true};
    } else if (event == "left" || event == "retry") {
        begun_[record.at("trial").get<std::int64_t>()].trains = false;
    } else if (event == "start") {
        for (auto& [trial, begun] : begun_) {
            begun.deaths += begun.trains ? 1 : 0;
            begun.trains = false;
        }
    } else if (event == "usage") {
        static_cast<void>(record.at("rank_seconds").get<double>());
        static_cast<void>(record.at("busy_rank_seconds").get<double>());
    }
    notes_.push_back(std::move(record));
}

std::int64_t Study::deaths(std::int64_t trial, std::int64_t step) const {
    auto const found = begun_.find(trial);
    return found == begun_.end() || step > found->second.step ? 0 : found->second.deaths;
}

void Study::take_ask(Json const& record) {
    auto const job = strategy_->ask();
    if (!job || job->trial != record.at("trial") || job->share != record.at("share") ||
        (record.contains("values") &&
         record.at("values").get<Values>() != space_.values(job->point))) {
        throw_foreign(concat("its line ", record.at("seq").get<std::int64_t>() + 1,
                             " records another trial than this program would start there"));
    }
    accept(*job);
}

void Study::accept(Job const& job) {
    if (!job.point.empty()) {
        trials_.resize(std::max(trials_.size(), static_cast<std::size_t>(job.trial) + 1));
        trials_[static_cast<std::size_t>(job.trial)] = {
            space_.values(job.point), job.point, job.parent, job.parent_share, {}};
    }
    open_[job.trial] = job;
    asked_.push_back(job.trial);
}

std::optional<Job> Study::next() {
    if (!waiting_.empty()) {
        auto job = waiting_.front();
        waiting_.pop_front();
        return job;
    }
    auto job = strategy_->ask();
    if (job) {
        accept(*job);
        if (journal_) {
            journal_->append(json_of(*job, trials_[static_cast<std::size_t>(job->trial)].values));
        }
    }
    return job;
}

std::int64_t Study::queued() const {
    return static_cast<std::int64_t>(waiting_.size());
}

void Study::accept(Outcome const& outcome) {
    if (open_.erase(outcome.trial) == 0) {
        throw_foreign(concat("trial ", outcome.trial + 1,
                             " has a result, but the trial was not waiting for one"));
    }
    begun_.erase(outcome.trial);
    trials_[static_cast<std::size_t>(outcome.trial)].outcomes.push_back(outcome);
    strategy_->tell({outcome.trial, outcome.share, losses(outcome)});
}

void Study::tell(Outcome outcome) {
    auto const open = open_.find(outcome.trial);
    if (open == open_.end()) {
        throw Error(ExitCode::usage, {concat("trial ", outcome.trial + 1, " cannot get a result"),
                                      "this trial already has a result, or was never suggested",
                                      "Name a trial that was suggested and has no result yet"});
    }
    outcome.share = open->second.share;
    std::erase_if(waiting_, [&](Job const& job) { return job.trial == outcome.trial; });
    if (journal_) { // first on disk, then acted on
        auto record = json_of(outcome);
        record["event"] = "result";
        journal_->append(record);
    }
    accept(outcome);
}

void Study::note(Json record) {
    if (journal_) {
        journal_->append(record);
    }
    take_note(std::move(record));
}

std::vector<double> Study::losses(Outcome const& outcome) const {
    std::vector<double> losses;
    for (auto const& goal : settings_.goals) {
        auto const found = outcome.metrics.find(goal.metric);
        bool const there =
            outcome.code == 0 && found != outcome.metrics.end() && std::isfinite(found->second);
        losses.push_back(!there                ? std::numeric_limits<double>::infinity()
                         : goal.more_is_better ? -found->second
                                               : found->second);
    }
    return losses;
}

std::vector<std::int64_t> Study::best() const {
    double farthest = 0;
    std::vector<std::int64_t> chosen;
    std::vector<std::vector<double>> of_chosen;
    auto const usable = [&](Trial const& trial) {
        return trial.newest() != nullptr && !std::isinf(losses(*trial.newest()).front());
    };
    for (auto const& trial : trials_) {
        farthest = usable(trial) ? std::max(farthest, trial.newest()->share) : farthest;
    }
    for (std::size_t at = 0; at < trials_.size(); ++at) {
        if (usable(trials_[at]) && trials_[at].newest()->share >= farthest - 1e-9) {
            chosen.push_back(static_cast<std::int64_t>(at));
            of_chosen.push_back(losses(*trials_[at].newest()));
        }
    }
    if (chosen.empty()) {
        return {};
    }
    if (settings_.goals.size() == 1) {
        auto const min = std::ranges::min_element(of_chosen) - of_chosen.begin();
        return {chosen[static_cast<std::size_t>(min)]};
    }
    std::vector<std::size_t> order = fronts_of(of_chosen).front();
    std::ranges::stable_sort(order, {}, [&](auto at) { return of_chosen[at]; });
    std::vector<std::int64_t> best;
    for (auto const at : order) {
        best.push_back(chosen[at]);
    }
    return best;
}

std::string trial_directory(std::int64_t trial) {
    return fmt::format("trials/{:04}", trial + 1);
}

void require_known_trials(std::filesystem::path const& directory, std::size_t known) {
    std::error_code none; // a search without trials
    for (auto const& entry : std::filesystem::directory_iterator(directory / "trials", none)) {
        auto const number = number_of<std::size_t>(entry.path().filename().string());
        if (number && *number > known) {
            throw Error(
                ExitCode::data,
                {concat(entry.path().string(), " is not in the journal of this search"),
                 concat(
                     "the journal ", journal_name, " lists only ", amount_of(known, "trial"),
                     ", so it was probably deleted and started over, or replaced by an older copy"),
                 "Copy the newest journal back from a backup, remove the trials that the journal "
                 "does not list, or start a new search in another --directory"});
        }
    }
}

} // namespace lockstep::search
