#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/file_lock.hpp"
#include "base/lease.hpp"
#include "base/lock_holder.hpp"
#include "base/notice.hpp"
#include "base/number.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "lockstep/base/signals.hpp"
#include "report/search_pictures.hpp"
#include "search/report.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <csignal>
#include <iostream>

#include "build_info.hpp"
#include "command_group.hpp"
#include "commands.hpp"
#include "train_side_options.hpp"

namespace lockstep::app {

namespace {

struct SuggestTold {
    std::filesystem::path directory;
};

struct SearchReportTold {
    std::optional<double> carbon;
};

Options search_report_options(SearchReportTold& told) {
    return {.command = "lockstep search report",
            .positions = {"DIR", 1, 1},
            .about = "Writes three things into the directory of a search, which may still be "
                     "running: search.md (a table of the trials, the best trials, the importance "
                     "of each key), plots/ (pictures of parallel coordinates, the Pareto front and "
                     "importance) and best.ini (the deck of the best trial).",
            .rows = {option::real(
                "--carbon-intensity G_PER_KWH",
                "grams of CO2 per kWh of your site's electricity, to report the CO2 of the search",
                told.carbon)}};
}

Options search_suggest_options(SuggestTold& told) {
    return {.command = "lockstep search suggest",
            .positions = {"SPACE.ini", 1, 1},
            .about =
                "Prints, as JSON, the next trial of a search whose trials you run yourself. The "
                "trial is null if the search has finished, or if the results of earlier trials are "
                "needed first. Report the result of a trial with lockstep search tell.",
            .rows = {option::required(
                option::path("--directory DIRECTORY", "directory of the search", told.directory))}};
}

Options search_tell_options(NothingTold&) {
    return {
        .command = "lockstep search tell",
        .positions = {"DIR TRIAL VALUE...", 3, 20},
        .about =
            "Records the result of a suggested trial: one VALUE for each goal in search.goals, in "
            "the same order, or the word failed. If lockstep search trains the trials itself, only "
            "the word failed is accepted: use it for a trial that ends the job each time it runs."};
}

/// The lock of a search that people drive themselves, as a running search has it.
FileLock locked(std::filesystem::path const& directory) {
    make_directories(directory);
    FileLock lock(directory / "lock");
    if (lock.is_held_elsewhere()) {
        throw Error(ExitCode::cannot_create,
                    {concat("cannot use ", directory.string()),
                     lock_holder(directory / "lock").text, "Wait until that process ends"});
    }
    return lock;
}

constexpr char const* by_hand = "by hand"; ///< in place of a deck: nobody else runs its trials

nlohmann::json json_of(std::optional<search::Job> const& job, search::Study const& study) {
    if (!job) {
        return {{"trial", nullptr}, {"finished", study.is_finished()}};
    }
    auto const& trial = study.trials()[static_cast<std::size_t>(job->trial)];
    nlohmann::json json{{"trial", job->trial + 1}, {"share", job->share}, {"values", trial.values}};
    if (job->parent >= 0) {
        json["parent"] = job->parent + 1;
        json["parent_share"] = job->parent_share;
    }
    return json;
}

ExitCode suggest_command(Invocation const& invocation) {
    SuggestTold told;
    auto const words = search_suggest_options(told).parse(invocation.arguments);
    config::DeckSource source;
    source.read(words.positions[0]);
    auto const settings = search::settings_of(source);
    search::Space const space(source, settings.constraints, settings.constraints_origin);
    search::Identity identity{.space = {}, .deck = by_hand, .version = build::version};
    for (auto const& [key, written] : source.values()) {
        identity.space[key] = written.value;
    }
    auto const lock = locked(told.directory);
    search::Study study(std::move(identity),
                        std::make_unique<search::Journal>(told.directory / search::journal_name));
    for (std::int64_t known = study.queued(); known > 0; --known) {
        static_cast<void>(study.next()); // suggested before, and not told yet
    }
    std::cout << json_of(study.next(), study).dump() << "\n";
    return ExitCode::ok;
}

search::Outcome outcome_of(std::vector<std::string> const& words,
                           search::Settings const& settings) {
    search::Outcome outcome;
    auto const refuse = [](std::string const& what, std::string const& why) {
        throw Error(ExitCode::usage, {what, why, "See lockstep search tell --help"});
    };
    auto const trial = number_of<std::int64_t>(words[1]);
    if (!trial || *trial < 1) {
        refuse(concat("TRIAL ", words[1]), "expected the number of a trial, from 1 on");
    }
    outcome.trial = *trial - 1;
    if (words.size() == 3 && words[2] == "failed") {
        outcome.code = static_cast<int>(ExitCode::usage);
        outcome.message = "lockstep search tell recorded it as failed";
        return outcome;
    }
    if (words.size() - 2 != settings.goals.size()) {
        refuse(concat(words.size() - 2, words.size() == 3 ? " value" : " values"),
               concat("expected one for each goal, and the search has ",
                      amount_of(settings.goals.size(), "goal")));
    }
    for (std::size_t at = 0; at < settings.goals.size(); ++at) {
        auto const value = number_of<double>(words[at + 2]);
        if (!value || !std::isfinite(*value)) {
            refuse(concat("VALUE ", words[at + 2]), "expected a finite number, or \"failed\"");
        }
        outcome.metrics[settings.goals[at].metric] = *value;
    }
    return outcome;
}

ExitCode tell_command(Invocation const& invocation) {
    auto const words = positions_of(search_tell_options, invocation);
    std::filesystem::path const directory = words[0];
    auto const before = search::Study::look_at(directory);
    bool const trains_itself = before->identity().deck != by_hand;
    auto const lock = locked(directory);
    auto outcome = outcome_of(words, before->settings());
    if (trains_itself && outcome.code == 0) {
        throw Error(ExitCode::usage,
                    {concat("no value can be recorded for search ", directory.string()),
                     "this search trains its trials itself, so only \"failed\" can be recorded",
                     "Start the search again to train its remaining trials"});
    }
    std::optional<Lease> lease; // a search may run where this host's lock does not reach
    if (trains_itself) {
        lease.emplace(directory, false);
    }
    auto journal = std::make_unique<search::Journal>(directory / search::journal_name);
    if (lease) {
        journal->set_guard([&lease] { lease->require(); });
    }
    search::Study study(before->identity(), std::move(journal));
    study.tell(std::move(outcome));
    return ExitCode::ok;
}

ExitCode report_search_command(Invocation const& invocation) {
    SearchReportTold told;
    std::filesystem::path const directory =
        search_report_options(told).parse(invocation.arguments).positions[0];
    auto const study = search::Study::look_at(directory);
    auto const plots = directory / "plots";
    require_own_place(plots);
    std::vector<std::string> pictures;
    try {
        for (auto const& file : report::draw_search(*study, plots)) {
            pictures.push_back("plots/" + file);
        }
    } catch (Error const& error) {
        notice(concat("warning: ", error.what()));
    }
    std::cout << search::write_report(*study, directory, {pictures, told.carbon});
    return ExitCode::ok;
}

CommandGroup search_group() {
    return {.name = "search",
            .commands = {{"report", report_search_command,
                          [](HelpWords const&) { return help_of(search_report_options); }},
                         {"suggest", suggest_command,
                          [](HelpWords const&) { return help_of(search_suggest_options); }},
                         {"tell", tell_command,
                          [](HelpWords const&) { return help_of(search_tell_options); }}}};
}

} // namespace

ExitCode search_command(Invocation const& invocation) {
    auto const& words = invocation.arguments;
    bool const is_part =
        !words.empty() && (words[0] == "report" || words[0] == "suggest" || words[0] == "tell");
    if (is_part) {
        return run_one_of(search_group(), invocation);
    }
    SignalRequests const signals; // noted from here on, while LibTorch and MPI start
    outlive_listeners();
    return train_side_command("search", invocation);
}

std::string search_help(HelpWords const& words) {
    return (words.empty() ? help_of(search_options) : std::string()) +
           help_of(search_group(), words);
}

} // namespace lockstep::app
