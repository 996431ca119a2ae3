#include "app/command.hpp"
#include "base/arguments.hpp"
#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "checkpoint/diff.hpp"
#include "checkpoint/store.hpp"
#include "lockstep/config/deck_source.hpp"
#include "measure/measurement.hpp"

#include <algorithm>
#include <iostream>
#include <unistd.h>

#include "child.hpp"
#include "run_difference.hpp"

namespace lockstep::app {

namespace {

constexpr char const* verify_resume_usage =
    "lockstep verify-resume DECK --ranks A --resume-ranks B --kill-at K --steps N";

constexpr char const* verify_resume_help =
    R"(lockstep verify-resume DECK... --ranks A --resume-ranks B --kill-at K --steps N
                       [--launcher mpirun|srun] [--section.key VALUE]...
    Proves exact resume on this very set-up. Trains N steps on A ranks; trains again, lets SIGKILL
    end the last rank at step K, and resumes on B ranks; compares every bit of the two last states.
    Exit 0: equal, 1: different. The runs' directories, beside the deck's own, are removed.
)";

struct VerifyResumeOptions {
    std::int64_t ranks = 0;
    std::int64_t resume_ranks = 0;
    std::int64_t kill_at = 0;
    std::int64_t steps = 0;
    std::string launcher;
    std::vector<std::string> words; ///< decks and keys, as they were given
};

std::int64_t required(std::vector<std::string>& arguments, std::string const& name) {
    auto const text = take_option(arguments, name, "");
    if (text.empty()) {
        throw Error(ExitCode::usage, {concat(name, " is missing"), "it has no default",
                                      concat("Usage: ", verify_resume_usage)});
    }
    return measure::whole_number(name, text);
}

VerifyResumeOptions verify_resume_options(std::vector<std::string> arguments) {
    VerifyResumeOptions options;
    options.ranks = required(arguments, "--ranks");
    options.resume_ranks = required(arguments, "--resume-ranks");
    options.kill_at = required(arguments, "--kill-at");
    options.steps = required(arguments, "--steps");
    options.launcher = take_option(arguments, "--launcher", "mpirun");
    if (options.kill_at > options.steps) {
        throw Error(ExitCode::usage,
                    {concat("--kill-at ", options.kill_at),
                     concat("there are ", options.steps, " steps"), "Kill at one of them"});
    }
    expect_arguments(config::DeckSource().take_options(arguments), 1, 1000, verify_resume_usage);
    options.words = std::move(arguments);
    return options;
}

/// The deck as `train` sees it.
config::Deck deck_of(std::vector<std::string> const& words) {
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

/// The directories of both runs; they go with this object.
class Place {
  public:
    explicit Place(std::filesystem::path const& run)
        : path_(concat(run.string(), ".verify-resume-", ::getpid())) {
        make_directories(path_);
    }
    Place(Place const&) = delete;
    Place& operator=(Place const&) = delete;
    ~Place() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::filesystem::path operator/(char const* name) const { return path_ / name; }

  private:
    std::filesystem::path path_;
};

class Trial {
  public:
    explicit Trial(VerifyResumeOptions options)
        : options_(std::move(options)), deck_(deck_of(options_.words)),
          place_(deck_.run.directory) {}

    int train(std::string const& run, std::int64_t ranks, std::string const& fault) const;
    void require_finished(int code, std::string const& run) const;
    bool killed_in_time(std::string const& run) const;
    checkpoint::Comparison compare() const;
    std::vector<std::string> where_they_part() const {
        return where_runs_part(place_ / "straight", place_ / "killed");
    }

  private:
    std::filesystem::path newest(std::string const& run) const;
    std::string last_words() const;

    VerifyResumeOptions options_;
    config::Deck deck_;
    Place place_;
};

int Trial::train(std::string const& run, std::int64_t ranks, std::string const& fault) const {
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
    // Resumed from in the middle of what was done before the kill; tested nowhere.
    words.insert(words.end(), {"--run.directory",
                               (place_ / run.c_str()).string(),
                               "--run.replicas",
                               std::to_string(replicas),
                               "--train.epochs",
                               "0",
                               "--train.steps",
                               std::to_string(options_.steps),
                               "--checkpoint.every-steps",
                               std::to_string(std::max<std::int64_t>(options_.kill_at / 2, 1)),
                               "--checkpoint.resume",
                               "auto",
                               "--data.test",
                               "",
                               "--monitor.progress",
                               "none",
                               "--monitor.weight-hash",
                               "true",
                               "--monitor.log-every",
                               "1"});
    std::cout << run << ": " << options_.steps << " steps on " << ranks
              << (ranks == 1 ? " rank" : " ranks")
              << (fault.empty() ? "" : concat(", killed at step ", options_.kill_at)) << std::endl;
    return run_child(words, {"LOCKSTEP_INJECT=" + fault}, place_ / "output");
}

std::filesystem::path Trial::newest(std::string const& run) const {
    auto const entries = checkpoint::Store(place_ / run.c_str() / "checkpoints", 1).list();
    return entries.empty() ? std::filesystem::path() : entries.front().path;
}

std::string Trial::last_words() const {
    auto const text = read_text(place_ / "output");
    auto const at = text.rfind("lockstep: ");
    auto const from =
        at == std::string::npos ? text.size() - std::min<std::size_t>(text.size(), 500) : at;
    auto const line = text.substr(from, text.find('\n', from) - from);
    return std::string(trimmed(line));
}

void Trial::require_finished(int code, std::string const& run) const {
    if (code != 0) {
        auto const known = code == 64 || code == 65 || code == 66 || code == 69 || code == 71 ||
                           code == 73 || code == 74;
        throw Error(known ? static_cast<ExitCode>(code) : ExitCode::software,
                    {concat("run ", run, " ended with ", code), last_words(),
                     "Correct that first; lockstep train with the same deck shows more"});
    }
}

bool Trial::killed_in_time(std::string const& run) const {
    auto const entries = checkpoint::Store(place_ / run.c_str() / "checkpoints", 1).list();
    return !entries.empty() && entries.front().step < options_.steps;
}

checkpoint::Comparison Trial::compare() const {
    return checkpoint::diff(newest("straight"), newest("killed"));
}

/// Each rank would start ranks of its own, and mpirun refuses to start below another.
void require_no_launcher() {
    for (char const* const variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK"}) {
        if (environment(variable)) {
            throw Error(ExitCode::usage,
                        {"lockstep verify-resume was started by mpirun or srun",
                         "it starts its ranks by itself, as many as --ranks and --resume-ranks say",
                         "Start it alone: lockstep verify-resume DECK …"});
        }
    }
}

} // namespace

ExitCode verify_resume_command(Invocation const& invocation) {
    auto arguments = invocation.arguments;
    if (arguments.empty() || take_flag(arguments, "--help")) {
        std::cout << verify_resume_help;
        return invocation.arguments.empty() ? ExitCode::usage : ExitCode::ok;
    }
    require_no_launcher();
    auto const options = verify_resume_options(arguments);
    Trial const trial(options);
    trial.require_finished(trial.train("straight", options.ranks, ""), "straight");
    auto const fault = concat("kill:rank=", options.ranks - 1, ":step=", options.kill_at);
    auto const code = trial.train("killed", options.ranks, fault);
    if (code == 0 || !trial.killed_in_time("killed")) {
        trial.require_finished(code, "killed");
        throw Error(ExitCode::software, {concat("SIGKILL at step ", options.kill_at),
                                         "the run continued to its end", "Please report this"});
    }
    trial.require_finished(trial.train("killed", options.resume_ranks, ""), "killed");
    auto const comparison = trial.compare();
    for (auto const& difference : comparison.state) {
        std::cout << difference.where << ": " << difference.what << "\n";
    }
    for (auto const& line : trial.where_they_part()) {
        std::cout << line << "\n";
    }
    std::cout << (comparison.identical() ? "equal: every bit of the state\n" : "different\n");
    return comparison.identical() ? ExitCode::ok : ExitCode::different;
}

} // namespace lockstep::app
