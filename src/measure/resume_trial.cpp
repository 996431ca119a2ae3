#include "measure/resume_trial.hpp"

#include "base/child.hpp"
#include "base/file.hpp"
#include "base/letters.hpp"
#include "base/partial_file.hpp"
#include "base/text.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/base/error.hpp"
#include "lockstep/config/deck_source.hpp"
#include "measure/run_difference.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

namespace lockstep::measure {

namespace {

/// Keys of both runs, which are resumed from in the middle of what was done before the kill, and
/// tested nowhere.
std::vector<std::pair<std::string, std::string>> keys_of(ResumeTrialOptions const& options) {
    return {
        {"train.epochs", "0"},
        {"train.steps", std::to_string(options.steps)},
        {"checkpoint.every-steps", std::to_string(std::max<std::int64_t>(options.kill_at / 2, 1))},
        {"checkpoint.resume", "auto"},
        {"data.test", ""},
        {"monitor.progress", "none"},
        {"monitor.weight-hash", "true"},
        {"monitor.log-every", "1"}};
}

/// What the command line says of these keys would be dropped.
void require_free_keys(ResumeTrialOptions const& options) {
    config::DeckSource command_line;
    command_line.take_options(options.words);
    for (auto const& [key, value] : keys_of(options)) {
        auto const said = command_line.values().find(key);
        if (said != command_line.values().end() && said->second.value != value) {
            throw Error(ExitCode::usage, {concat(key, " = ", said->second.value, " (command line)"),
                                          concat("lockstep verify-resume sets ", key,
                                                 " itself, to ", value.empty() ? "nothing" : value),
                                          "Leave this key out"});
        }
    }
}

/// The deck as `train` sees it.
config::Deck deck_of(ResumeTrialOptions const& options) {
    require_free_keys(options);
    auto const& words = options.words;
    config::DeckSource source;
    std::string name;
    for (auto const& file : config::DeckSource().take_options(words)) {
        source.read(file);
        name = std::filesystem::path(file).stem().string();
    }
    source.take_options(words);
    auto deck = source.parse();
    if (deck.run.directory.empty()) {
        deck.run.directory =
            (std::filesystem::path("runs") / (deck.run.name.empty() ? name : deck.run.name))
                .string();
    }
    return deck;
}

} // namespace

TrialRuns::TrialRuns(std::filesystem::path const& run)
    : path_(concat(run.string(), ".verify-resume-", new_token())),
      clean_up_([path = path_] { remove_tree(path); }) {
    make_directories(path_);
}

TrialRuns::~TrialRuns() {
    remove_tree(path_);
}

ResumeTrial::ResumeTrial(ResumeTrialOptions options)
    : options_(std::move(options)), deck_(deck_of(options_)), runs_(deck_.run.directory) {}

void ResumeTrial::run() const {
    require_finished(train("straight", options_.ranks, ""), "straight");
    require_kill_before_end();
    auto const fault = concat("kill:rank=", options_.ranks - 1, ":step=", options_.kill_at);
    auto const code = train("killed", options_.ranks, fault);
    if (code == 0 || !killed_in_time("killed")) {
        require_finished(code, "killed");
        throw Error(ExitCode::software,
                    {concat("the run was not killed at step ", options_.kill_at),
                     "it continued to its end", "This is a bug; please report it"});
    }
    require_finished(train("killed", options_.resume_ranks, ""), "killed");
}

int ResumeTrial::train(std::string const& run, std::int64_t ranks, std::string const& fault) const {
    std::vector<std::string> words{options_.launcher};
    if (std::filesystem::path(options_.launcher).filename() == "srun") {
        words.insert(words.end(), {"--mpi=pmix", "-n", std::to_string(ranks)});
    } else {
        words.insert(words.end(), {"-n", std::to_string(ranks), "-x", "LOCKSTEP_INJECT"});
    }
    words.insert(words.end(), {own_program().string(), "train"});
    words.insert(words.end(), options_.words.begin(), options_.words.end());
    auto const replicas = deck_.run.replicas > 0 ? deck_.run.replicas
                                                 : std::max(options_.ranks, options_.resume_ranks);
    words.insert(words.end(), {"--run.directory", (runs_ / run).string(), "--run.replicas",
                               std::to_string(replicas)});
    for (auto const& [key, value] : keys_of(options_)) {
        words.insert(words.end(), {concat("--", key), value});
    }
    if (deck_.privacy.is_on() && deck_.privacy.key.empty()) { // one for both
        words.insert(words.end(), {"--privacy.key", (runs_ / "privacy.key").string()});
    }
    std::cout << run << ": " << options_.steps << " steps on " << amount_of(ranks, "rank")
              << (fault.empty() ? "" : concat(", killed at step ", options_.kill_at)) << std::endl;
    std::error_code none; // nothing was run before
    std::filesystem::remove(runs_ / "output", none);
    return run_child(words, {"LOCKSTEP_INJECT=" + fault}, runs_ / "output");
}

std::filesystem::path ResumeTrial::newest(std::string const& run) const {
    auto const entries = checkpoint::Store(runs_ / run / "checkpoints", 1).list();
    return entries.empty() ? std::filesystem::path() : entries.front().path;
}

std::string ResumeTrial::last_words() const {
    auto const text = read_text(runs_ / "output");
    auto at = text.rfind("lockstep: ");
    if (at == std::string::npos) { // the launcher's own, in a frame
        at = std::ranges::find_if(text, is_alphanumeric) - text.begin();
    }
    return std::string(trimmed(text.substr(at, text.find('\n', at) - at)));
}

void ResumeTrial::require_finished(int code, std::string const& run) const {
    if (code != 0) {
        bool const known = code >= static_cast<int>(ExitCode::usage) &&
                           code <= static_cast<int>(ExitCode::superseded);
        throw Error(known ? static_cast<ExitCode>(code) : ExitCode::unavailable,
                    {concat("the run named ", run, " ended with exit code ", code), last_words(),
                     "Correct that error first; lockstep train with the same deck shows more"});
    }
}

void ResumeTrial::require_kill_before_end() const {
    auto const kept = checkpoint::Store(runs_ / "straight" / "checkpoints", 1).list();
    if (kept.empty() || kept.front().step >= options_.kill_at) {
        return;
    }
    auto const steps = kept.front().step;
    auto const episodes = deck_.task.own.find("episodes");
    auto const key = deck_.privacy.is_on() && deck_.privacy.epsilon > 0
                         ? concat("privacy.epsilon = ", deck_.privacy.epsilon)
                     : deck_.train.patience > 0 ? concat("train.patience = ", deck_.train.patience)
                     : episodes != deck_.task.own.end()
                         ? concat("task.episodes = ", episodes->second)
                         : std::string("the end of data.train");
    throw Error(ExitCode::usage,
                {concat("--kill-at ", options_.kill_at),
                 concat(key, " ends the run after ", amount_of(steps, "step"),
                        ", so that it cannot be killed at this step"),
                 concat("Choose an earlier step, or change ", key.substr(0, key.find(" =")))});
}

bool ResumeTrial::killed_in_time(std::string const& run) const {
    auto const entries = checkpoint::Store(runs_ / run / "checkpoints", 1).list();
    return !entries.empty() && entries.front().step < options_.steps;
}

checkpoint::Comparison ResumeTrial::compare() const {
    return checkpoint::diff(newest("straight"), newest("killed"));
}

std::vector<std::string> ResumeTrial::where_they_part() const {
    return where_runs_part(runs_ / "straight", runs_ / "killed");
}

} // namespace lockstep::measure
